#include "kelvin/experiment/tasks/truncate.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/run/run.h"
#include "kelvin/measures/probes.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/requests.h"
#include "tests/support/tiny_run.h"

namespace kelvin::truncate_test {

class TruncatedRun : public testing::Test {
 protected:
  void SetUp() override {
    run(tiny_config({R"(measure.names=["accuracy"])", "data.ood=[]", "train.epochs=6"}),
        folder_ / "run", kNoMetadata, {});
  }

  std::filesystem::path run_folder() const { return folder_ / "run"; }

  TemporaryFolder folder_;
};

nlohmann::ordered_json truncate(const std::filesystem::path& run, TruncateRequest request,
                                const RunContext& context) {
  request.run = run;
  return kelvin::truncate(request, context);
}

double own_accuracy(const Readings& readings) {
  for (const auto& reading : readings) {
    if (reading.name == "accuracy" && reading.split == "test") return reading.value;
  }
  return -1;
}

TEST_F(TruncatedRun, IsWhatItsFileSaysWhenThatIsMeasured) {
  const std::string file = folder_ / "cut.safetensors";
  const auto result = truncate(run_folder(), {.layer = "layers.0", .output = file}, {});
  EXPECT_EQ(result.at("layer"), "layers.0");
  EXPECT_EQ(result.at("place"), 1);
  EXPECT_EQ(result.at("layers"), 3);
  EXPECT_LT(result.at("truncated").at("parameters"), result.at("whole").at("parameters"));
  EXPECT_LT(result.at("truncated").at("macs"), result.at("whole").at("macs"));
  const auto config =
      tiny_config({R"(measure.names=["accuracy"])", "data.ood=[]", "model.name=truncated",
                   "model.of=mlp", "model.layer=layers.0", "model.pool=" + result.at("pool").dump(),
                   "init.pretrained=" + file});
  EXPECT_DOUBLE_EQ(own_accuracy(measure_weights({.settings = config}, {})),
                   result.at("truncated").at("accuracy"));
  EXPECT_DOUBLE_EQ(own_accuracy(measure_run(run_folder(), request_for({"accuracy"}), {})),
                   result.at("whole").at("accuracy"));
}

// Normalisation has buffers besides its weights, a vision transformer parameters of its own.
TEST(TruncatedNetwork, OfOtherFamiliesIsWhatItsFileSays) {
  struct Case {
    std::vector<std::string> model;
    std::string layer;
  };
  const std::vector<Case> cases = {
      {{"model.name=resnet10", "model.width=0.125"}, "layer2.0.conv1"},
      {{"model.name=vit_tiny", "model.width=0.34", "model.depth=2", "model.patch=8"},
       "blocks.0.mlp.fc2"}};
  for (const auto& [model, layer] : cases) {
    SCOPED_TRACE(model[0]);
    TemporaryFolder folder;
    Config config;
    for (const char* each :
         {"data.name=glyphs10", "data.train_samples=128", "data.test_samples=128",
          "data.image_size=16", "train.epochs=1", "train.batch_size=32",
          R"(measure.names=["accuracy"])", "measure.linear_probe.max_iterations=10"}) {
      config.apply_override(each);
    }
    auto settings = config;
    for (const auto& each : model) settings.apply_override(each);
    run(settings, folder / "run", kNoMetadata, {});
    const std::string file = folder / "cut.safetensors";
    const auto result = truncate(folder / "run", {.layer = layer, .output = file}, {});
    EXPECT_LT(result.at("truncated").at("parameters"), result.at("whole").at("parameters"));
    auto again = config;
    for (const auto& each : result.at("settings").get<std::vector<std::string>>()) {
      again.apply_override(each);
    }
    for (const auto& each : {std::string("model.name=truncated"), "model.of=" + model[0].substr(11),
                             "model.layer=" + layer, "model.pool=" + result.at("pool").dump(),
                             "init.pretrained=" + file}) {
      again.apply_override(each);
    }
    EXPECT_DOUBLE_EQ(own_accuracy(measure_weights({.settings = again}, {})),
                     result.at("truncated").at("accuracy"));
  }
}

TEST_F(TruncatedRun, EndsAtTheFirstLayerThatIsGoodEnough) {
  TruncateRequest request;
  request.settings.set("measure.linear_probe.threshold", 0.01);
  EXPECT_EQ(truncate(run_folder(), request, {}).at("place"), 1);
  request.settings.set("measure.linear_probe.threshold", 0.9);
  const auto result = truncate(run_folder(), request, {});
  EXPECT_EQ(result.at("threshold"), 0.9);
  std::vector<double> accuracies;
  for (const auto& reading : measure_run(run_folder(), request_for({"linear_probe"}), {})) {
    if (reading.name == "probe_accuracy") accuracies.push_back(reading.value);
  }
  EXPECT_EQ(result.at("place"), first_sufficient(accuracies, 0.9));
  EXPECT_DOUBLE_EQ(result.at("truncated").at("accuracy"),
                   accuracies.at(result.at("place").get<size_t>() - 1));
}

// Weights come with a whole config, which has every setting of the probes.
TEST_F(TruncatedRun, CanBeAFileOfWeights) {
  auto config =
      RunSettings::from(tiny_config({R"(measure.names=["accuracy"])", "data.ood=[]"})).resolved;
  config.set("init.pretrained", (run_folder() / "checkpoints/last/model.safetensors").string());
  const auto result = truncate("", {.settings = config, .layer = "layers.1"}, {});
  EXPECT_EQ(result.at("layer"), "layers.1");
  const auto of_run = truncate(run_folder(), {.layer = "layers.1"}, {});
  EXPECT_EQ(result.at("truncated").at("accuracy"), of_run.at("truncated").at("accuracy"));
  const auto settings = result.at("settings").get<std::vector<std::string>>();
  EXPECT_NE(std::find(settings.begin(), settings.end(), "model.width=16"), settings.end());
}

TEST_F(TruncatedRun, RefusesALayerThatIsNotThereAndAFileThatIs) {
  EXPECT_EQ(error_of([&] { truncate(run_folder(), {.layer = "conv7"}, {}); }),
            "--layer: there is no layer 'conv7'");
  const auto config = run_folder() / "config.toml";
  EXPECT_EQ(error_of([&] { truncate(run_folder(), {.output = config}, {}); }),
            "--output: " + config.string() + " exists already");
}

TEST_F(TruncatedRun, RefusesANetworkThatIsNoClassifier) {
  const auto config = tiny_config({"train.loss=info_nce", "data.augment=flip", "measure.names=[]",
                                   "measure.detectors=[\"neco\"]", "train.epochs=1"});
  run(config, folder_ / "views", kNoMetadata, {});
  EXPECT_EQ(error_of([&] { truncate(folder_ / "views", {}, {}); }),
            "truncate: needs a classifier, and train.loss=info_nce trains none");
}

TEST_F(TruncatedRun, RefusesOtherProbesThanItsOwnAndOodData) {
  const auto refusal = [&](const char* setting) {
    TruncateRequest request{.layer = "layers.0"};
    request.settings.apply_override(setting);
    return error_of([&] { truncate(run_folder(), request, {}); });
  };
  EXPECT_EQ(refusal("measure.linear_probe.protocol=published"),
            "measure.linear_probe.protocol: must be \"diagnose\" to truncate a network, got "
            "\"published\"");
  EXPECT_EQ(refusal("measure.linear_probe.tap=before_add"),
            "measure.linear_probe.tap: must be \"output\" to truncate a network, got "
            "\"before_add\"");
  EXPECT_EQ(refusal(R"(data.ood=["textures10"])"),
            R"(data.ood: must be [] to truncate a network, got ["textures10"])");
  TruncateRequest same{.layer = "layers.0"};
  same.settings.apply_override("measure.linear_probe.protocol=diagnose");
  EXPECT_EQ(truncate(run_folder(), same, {}).at("layer"), "layers.0");
}

TEST_F(TruncatedRun, IsSaidToBeWholeIfNothingCanBeCut) {
  const auto single = folder_ / "single";
  run(tiny_config({R"(measure.names=["accuracy"])", "data.ood=[]", "model.depth=1"}), single,
      kNoMetadata, {});
  std::vector<std::string> warnings;
  RunContext context;
  context.warn = [&](const std::string& text) { warnings.push_back(text); };
  truncate(single, {}, context);
  EXPECT_EQ(warnings,
            std::vector<std::string>{"nothing is cut: no layer before the last, 'layers.0', has a "
                                     "probe that reaches 0.99 of its probe's accuracy"});
  warnings.clear();
  truncate(single, {.layer = "layers.0"}, context);
  EXPECT_TRUE(warnings.empty());
}

TEST(SufficientPlace, IsTheFirstThatReachesTheThreshold) {
  EXPECT_EQ(sufficient_place({0.2, 0.8, 0.8}, 0.99), 1U);
  EXPECT_EQ(sufficient_place({0.2, 0.7, 0.8}, 0.99), 2U);
}

TEST(SufficientPlace, IsNotChosenByADeadProbe) {
  EXPECT_EQ(error_of([] {
              sufficient_place({0.5, 0}, 0.99);
            }),
            "truncate: the probe of the last layer gets no sample right, so that any layer would "
            "do; name one (--layer)");
}

}  // namespace kelvin::truncate_test
