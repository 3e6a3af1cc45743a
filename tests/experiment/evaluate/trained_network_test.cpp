#include "kelvin/experiment/evaluate/trained_network.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kelvin/experiment/run/initial_logits.h"
#include "kelvin/experiment/run/run.h"
#include "kelvin/model/head.h"
#include "kelvin/model/weights.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/tiny_run.h"

namespace kelvin::trained_network_test {

class PreparedModel : public testing::Test {
 protected:
  static RunSettings settings(const std::vector<std::string>& overrides) {
    Config config;
    for (const char* each : {"data.name=glyphs10", "data.train_samples=64", "data.test_samples=16",
                             "model.name=mlp", "model.width=8", "model.depth=3"}) {
      config.apply_override(each);
    }
    for (const auto& each : overrides) config.apply_override(each);
    return RunSettings::from(config);
  }

  static std::shared_ptr<Model> model(const std::vector<std::string>& overrides) {
    const auto run = settings(overrides);
    return prepared_model(run, load_dataset(run.dataset, run.request));
  }

  TemporaryFolder folder_;
};

TEST_F(PreparedModel, IsDrawnFromTheSeed) {
  EXPECT_TRUE(model({})->parameters()[0].equal(model({})->parameters()[0]));
  EXPECT_FALSE(model({})->parameters()[0].equal(model({"seed=1"})->parameters()[0]));
}

TEST_F(PreparedModel, IsInitialisedAsTheSettingsSay) {
  const auto narrow = model({"init.last_uniform=1e-12"});
  EXPECT_LE(narrow->head()->linear()->weight.abs().max().item<double>(), 1.00001e-12);
}

TEST_F(PreparedModel, HasTheWantedNorm) {
  const auto run = settings({"init.target_logits_norm=0.125"});
  const auto dataset = load_dataset(run.dataset, run.request);
  EXPECT_NEAR(initial_logits(*prepared_model(run, dataset), dataset, 64).norm, 0.125, 1e-5);
}

TEST_F(PreparedModel, StartsFromAFile) {
  const auto path = folder_ / "w.safetensors";
  save_weights(path, *model({"seed=5"}));
  const auto loaded = model({"init.pretrained=" + path});
  EXPECT_TRUE(loaded->parameters()[0].equal(model({"seed=5"})->parameters()[0]));
  const auto reset =
      model({"init.pretrained=" + path, "init.reset_head=true", "data.classes=[\"5\"]"});
  EXPECT_TRUE(reset->parameters()[0].equal(loaded->parameters()[0]));
  EXPECT_EQ(reset->head()->linear()->weight.size(0), 5);
}

TEST_F(PreparedModel, RejectsSettingsThatWouldHaveNoEffect) {
  EXPECT_EQ(error_of([] { settings({"init.reset_head=true"}); }),
            "init.reset_head: is for pretrained weights; set init.pretrained as well");
  EXPECT_EQ(error_of([] {
              settings({"init.pretrained=a", "init.scale=2"});
            }),
            "init.pretrained: replaces what init.scheme and init.scale would draw; leave them out");
  EXPECT_EQ(error_of([] {
              settings({"init.pretrained=a", "init.last_uniform=1e-3"});
            }),
            "init.pretrained: replaces the last layer as well; init.last_uniform and "
            "init.last_scale need init.reset_head");
  EXPECT_EQ(error_of([] { settings({"init.deviation=5"}); }),
            "init.deviation: is for init.scheme=fixed; other schemes have their own");
  EXPECT_EQ(error_of([] { settings({"init.scale=0"}); }),
            "init.scale: must be a finite number above 0, got 0");
  EXPECT_EQ(error_of([] { settings({"init.target_logits_norm=-1"}); }),
            "init.target_logits_norm: must be a finite number, not below 0, got -1");
}

TEST_F(PreparedModel, RejectsAFileThatIsNotThere) {
  const auto message = error_of([&] { model({"init.pretrained=" + (folder_ / "none")}); });
  EXPECT_TRUE(message.starts_with(folder_ / "none")) << message;
}

// Before any training, and not blamed on the rate.
TEST_F(PreparedModel, MustHaveFiniteLogits) {
  const auto refusal = [](const std::vector<std::string>& overrides) {
    const auto run = settings(overrides);
    const auto dataset = load_dataset(run.dataset, run.request);
    const auto model = prepared_model(run, dataset);
    return error_of([&] { check_initial_logits(run, *model, dataset); });
  };
  const auto scaled = refusal({"init.scale=1e30"});
  EXPECT_TRUE(scaled.starts_with("init.scale = 1e+30: the logits before training must be finite, "))
      << scaled;
  const auto last = refusal({"init.last_scale=1e28", "train.temperature=1e-12"});
  EXPECT_TRUE(last.starts_with("train.temperature: the logits before training, up to ")) << last;
  EXPECT_TRUE(last.ends_with(", got T = 1e-12")) << last;
  const auto run = settings({"init.scale=100"});
  const auto dataset = load_dataset(run.dataset, run.request);
  EXPECT_NO_THROW(check_initial_logits(run, *prepared_model(run, dataset), dataset));
}

TEST(TrainedNetwork, OfARunHasItsLastWeightsAndTheChangesAskedFor) {
  const TemporaryFolder folder;
  run(tiny_config({R"(measure.names=["accuracy"])"}), folder / "run", kNoMetadata, {});
  Config changes;
  changes.set("measure.train_samples", 7);
  const auto network = open_run(folder / "run", changes, {});
  EXPECT_EQ(network.settings.measure.train_samples, 7);
  const auto again = network.settings.build_model(shape_for(network.settings, network.data.own));
  load_weights(folder / "run/checkpoints/last/model.safetensors", *again);
  for (const auto& [name, tensor] : weights_of(*again)) {
    EXPECT_TRUE(tensor.equal(weights_of(*network.model).at(name))) << name;
  }
}

TEST(TrainedNetwork, OfAFileNeedsOne) {
  EXPECT_EQ(error_of([] { open_weights(tiny_config(), {}); }),
            "init.pretrained: must name a file of weights");
}

}  // namespace kelvin::trained_network_test
