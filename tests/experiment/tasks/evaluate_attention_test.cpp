#include "kelvin/experiment/tasks/evaluate_attention.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kelvin/core/files.h"
#include "kelvin/experiment/tasks/train_retrieval.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin::evaluate_attention_test {

class EvaluatedNetworks : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* attention : {"softmax", "top_k"}) {
      TrainRetrievalRequest request{.seeds = {0, 1}, .output = folder_.path()};
      request.config.set("retrieval.width", 8);
      request.config.set("retrieval.steps", 3);
      request.config.set("retrieval.attention", attention);
      train_retrieval(request, {});
    }
  }

  EvaluateAttentionRequest request() const {
    return {.networks = {folder_.path()}, .sizes = {8, 40}, .sets = 20};
  }

  TemporaryFolder folder_;
};

Readings named(const Readings& readings, const std::string& name, const std::string& attention) {
  Readings found;
  for (const auto& reading : readings) {
    if (reading.name == name && reading.definition.value("attention", "") == attention) {
      found.push_back(reading);
    }
  }
  return found;
}

TEST_F(EvaluatedNetworks, HaveReadingsOfEachMapSizeAndSeed) {
  const auto evaluated = evaluate_attention(request(), {});
  for (const char* name : {"retrieval_accuracy", "attention_entropy_nats", "attention_top_weight",
                           "attention_right_weight"}) {
    for (const char* attention : {"softmax", "adaptive", "top_k"}) {
      EXPECT_EQ(named(evaluated.readings, name, attention).size(), 4U) << name << attention;
    }
  }
  // Two sizes of three maps, of the first network of each.
  EXPECT_EQ(evaluated.heat.size(), 6U);
  EXPECT_EQ(evaluated.heat[0].rows.size(), 20U);
  EXPECT_EQ(evaluated.heat[0].rows[0].size(), 8U);
}

TEST_F(EvaluatedNetworks, TakeACoefficientsFile) {
  write_file_atomically(folder_ / "beta.toml", "[beta]\ncoefficients = [0, 0, 0, 0, 1]\n");
  auto with_beta = request();
  with_beta.beta = folder_ / "beta.toml";
  with_beta.maps = {"top_k:k=2"};
  const auto readings = evaluate_attention(with_beta, {}).readings;
  const auto fitted = named(readings, "retrieval_accuracy", "adaptive:fitted");
  const auto own = named(readings, "retrieval_accuracy", "softmax");
  ASSERT_EQ(fitted.size(), own.size());
  // A beta of 1 leaves softmax as it is.
  for (size_t i = 0; i < own.size(); ++i) EXPECT_EQ(fitted[i].value, own[i].value);
  EXPECT_EQ(named(readings, "retrieval_accuracy", "top_k:k=2").size(), 4U);
}

TEST_F(EvaluatedNetworks, AreWithinTheBoundsOfDispersion) {
  for (const auto& reading : evaluate_attention(request(), {}).readings) {
    if (reading.name == "dispersion_violations") {
      EXPECT_EQ(reading.value, 0) << reading.definition;
    }
    if (reading.name == "logit_spread_over_bound") {
      EXPECT_LE(reading.value, 1);
    }
  }
}

TEST_F(EvaluatedNetworks, AreRefusedWithoutSizesOrOnRequest) {
  auto nothing = request();
  nothing.sizes = {};
  EXPECT_EQ(error_of([&] { evaluate_attention(nothing, {}); }),
            "max retrieval: needs at least one size");
  EXPECT_EQ(error_of([&] { evaluate_attention(request(), {.should_stop = [] { return true; }}); }),
            "stopped at softmax,seed=0.safetensors; nothing is shown");
}

}  // namespace kelvin::evaluate_attention_test
