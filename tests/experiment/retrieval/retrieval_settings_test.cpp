#include "kelvin/experiment/retrieval/retrieval_settings.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::retrieval_settings_test {

RetrievalSettings settings_of(const std::vector<std::string>& overrides) {
  Config config;
  for (const auto& each : overrides) config.apply_override(each);
  return RetrievalSettings::from(config);
}

TEST(RetrievalSettings, AreThoseOfThePaperByDefault) {
  const auto settings = settings_of({});
  EXPECT_EQ(settings.shape.width, 128);
  EXPECT_EQ(settings.training.batch_size, 128);
  EXPECT_EQ(settings.training.least, 5);
  EXPECT_EQ(settings.training.most, 16);
  EXPECT_EQ(settings.training.learning_rate, 1e-3);
  EXPECT_EQ(settings.training.weight_decay, 1e-3);
  EXPECT_EQ(settings.attention, "softmax");
}

TEST(RetrievalSettings, AreTheSameOnceResolved) {
  const auto once = settings_of({"retrieval.attention=top_k", "retrieval.attention_k=3"});
  const auto again = RetrievalSettings::from(once.resolved);
  EXPECT_EQ(again.resolved.values(), once.resolved.values());
  EXPECT_EQ(once.resolved.at("retrieval.attention_k"), 3);
}

TEST(RetrievalSettings, DivideTheScoresByTheTemperature) {
  const auto scores = doubles({1, 2, 4});
  const auto settings = settings_of({"retrieval.attention_temperature=2"});
  expect_close(settings.map(scores), torch::softmax(scores / 2, 0), 1e-12);
}

TEST(RetrievalSettings, GiveAnotherNetworkToAnotherSeed) {
  const auto first = [](const RetrievalSettings& settings) {
    return settings.network().parameters().front().second.detach();
  };
  EXPECT_TRUE(torch::equal(first(settings_of({})), first(settings_of({}))));
  EXPECT_FALSE(torch::equal(first(settings_of({})), first(settings_of({"retrieval.seed=1"}))));
}

TEST(RetrievalSettings, RejectWhatTheyCannotBe) {
  EXPECT_EQ(error_of([] { settings_of({"retrieval.width=0"}); }),
            "retrieval.width: must be from 1 to 4096, got 0");
  EXPECT_EQ(error_of([] { settings_of({"retrieval.classes=1"}); }),
            "retrieval.classes: must be from 2 to 1000, got 1");
  EXPECT_EQ(error_of([] { settings_of({"retrieval.steps=0"}); }),
            "retrieval.steps: must be at least 1, got 0");
  EXPECT_EQ(error_of([] { settings_of({"retrieval.most_items=4"}); }),
            "retrieval.most_items: must be from least_items = 5 to 65536, got 4");
  EXPECT_EQ(error_of([] { settings_of({"retrieval.lr=0"}); }),
            "retrieval.lr: must be a finite number above 0, got 0");
  EXPECT_NE(error_of([] { settings_of({"retrieval.attention=sofmax"}); }).find("softmax"),
            std::string::npos);
  EXPECT_NE(error_of([] { settings_of({"retrieval.setps=3"}); }).find("retrieval.steps"),
            std::string::npos);
  EXPECT_NE(error_of([] { settings_of({"train.lr=3"}); }), "");
}

TEST(MapOfText, HasASettingAfterEachColon) {
  const auto scores = doubles({1, 2, 4, 3});
  EXPECT_EQ((map_of_text("top_k:k=2", "x")(scores) > 0).sum().item<int64_t>(), 2);
  expect_close(map_of_text("softmax", "x")(scores), torch::softmax(scores, 0), 1e-12);
}

TEST(MapOfText, RejectsWhatIsNoMap) {
  EXPECT_EQ(error_of([] { map_of_text("top_k:2", "--maps"); }),
            "--maps: must be NAME:KEY=VALUE, got 'top_k:2'");
  EXPECT_NE(error_of([] { map_of_text("topk", "--maps"); }).find("top_k"), std::string::npos);
  EXPECT_NE(error_of([] { map_of_text("top_k:n=2", "--maps"); }), "");
}

}  // namespace kelvin::retrieval_settings_test
