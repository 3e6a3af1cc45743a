#include "kelvin/experiment/tasks/calibrate.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/run/run.h"
#include "kelvin/experiment/run/run_store.h"
#include "kelvin/formats/npz_file.h"
#include "kelvin/numerics/calibration.h"
#include "kelvin/runs/run_folder.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/real_data.h"
#include "tests/support/tensors.h"
#include "tests/support/tiny_run.h"

namespace kelvin::calibrate_test {

class Calibrate : public testing::Test {
 protected:
  Calibrate() {
    context_.warn = [this](const std::string& text) { warnings_.push_back(text); };
  }

  std::string dump(const std::string& name, const torch::Tensor& logits,
                   const torch::Tensor& labels) const {
    write_npz(folder_ / name, {{"logits", array_of(logits)}, {"labels", array_of(labels)}});
    return folder_ / name;
  }

  // Labels are drawn with the probabilities softmax(logits / temperature).
  std::string drawn_dump(const std::string& name, double temperature, uint64_t seed,
                         int64_t samples = 2000) const {
    const auto logits = 5 * noise({samples, 4}, seed);
    const auto chances = torch::rand(
        {samples, 4}, at::make_generator<at::CPUGeneratorImpl>(seed + 100), torch::kFloat64);
    // The largest logit with noise of Gumbel's distribution is such a draw.
    return dump(name, logits, (logits / temperature - (-chances.log()).log()).argmax(1));
  }

  TemporaryFolder folder_;
  RunContext context_;
  std::vector<std::string> warnings_;
};

std::set<std::string> scalings_of(const Readings& readings) {
  std::set<std::string> found;
  for (const auto& reading : readings) found.insert(reading.definition.at("scaling"));
  return found;
}

TEST_F(Calibrate, MakesProbabilitiesOfDumpsHonest) {
  const auto readings = calibrate(
      {.validation = drawn_dump("val.npz", 4, 0), .test = drawn_dump("test.npz", 4, 1)}, context_);
  EXPECT_TRUE(warnings_.empty());
  EXPECT_EQ(scalings_of(readings), (std::set<std::string>{"none", "temperature", "vector"}));
  const auto temperature = reading_of(readings, "temperature");
  EXPECT_NEAR(temperature.value, 4, 0.4);
  EXPECT_EQ(temperature.split, "validation");
  for (const char* name : {"nll", "brier", "ece", "ece_equal_mass", "ece_classwise"}) {
    const double before = reading_of(readings, name, {{"scaling", "none"}}).value;
    EXPECT_LT(reading_of(readings, name, {{"scaling", "temperature"}}).value, before) << name;
    EXPECT_LT(reading_of(readings, name, {{"scaling", "vector"}}).value, before) << name;
  }
  EXPECT_LT(reading_of(readings, "ece", {{"scaling", "temperature"}}).value, 0.04);
  EXPECT_EQ(reading_of(readings, "accuracy", {{"scaling", "temperature"}}).value,
            reading_of(readings, "accuracy", {{"scaling", "none"}}).value);
}

TEST_F(Calibrate, SaysWhatProvesTheTemperature) {
  const auto readings = calibrate({.validation = drawn_dump("val.npz", 3, 2)}, context_);
  const auto reading = reading_of(readings, "temperature");
  const auto& definition = reading.definition;
  EXPECT_EQ(definition.at("temperature_status"), "found");
  EXPECT_EQ(definition.at("converged"), true);
  const auto bracket = definition.at("beta_bracket").get<std::vector<double>>();
  const auto slopes = definition.at("slope_at_bracket").get<std::vector<double>>();
  EXPECT_LE(bracket.at(0), 1 / reading.value * (1 + 1e-12));
  EXPECT_GE(bracket.at(1), 1 / reading.value * (1 - 1e-12));
  EXPECT_LT(slopes.at(0), 0);
  EXPECT_GE(slopes.at(1), 0);
  EXPECT_EQ(definition.at("samples"), 1000);
  EXPECT_EQ(definition.at("fitted_on"), "a random half of val.npz");
  EXPECT_LT(definition.at("nll_after").get<double>(), definition.at("nll_before").get<double>());
  EXPECT_EQ(reading_of(readings, "ece", {{"scaling", "temperature"}}).definition.at("temperature"),
            reading.value);
}

TEST_F(Calibrate, NumbersAreThoseOfTheTestSamples) {
  const auto test = drawn_dump("test.npz", 2, 3, 300);
  const CalibrateRequest request{
      .validation = drawn_dump("val.npz", 2, 4), .test = test, .curves = folder_ / "curves.npz"};
  const auto readings = calibrate(request, context_);
  const auto arrays = read_npz(test);
  const auto logits = tensor_of(arrays.at("logits"));
  const auto labels = tensor_of(arrays.at("labels"));
  const auto curves = read_npz(request.curves);
  const auto expect = [&](const std::string& scaling, const CalibrationQuality& quality) {
    const Definition own = {{"scaling", scaling}, {"samples", 300}};
    EXPECT_EQ(reading_of(readings, "nll", own).value, quality.nll);
    EXPECT_EQ(reading_of(readings, "ece", own).value, quality.ece);
    EXPECT_EQ(reading_of(readings, "mce", own).value, quality.mce);
    EXPECT_EQ(reading_of(readings, "accuracy", own).value, quality.accuracy);
    expect_close(tensor_of(curves.at("calibrate/" + scaling + "/accuracy")),
                 quality.reliability.accuracy, 0);
    expect_close(tensor_of(curves.at("calibrate/" + scaling + "/count")), quality.reliability.count,
                 0);
  };
  expect("none", calibration_quality(logits, labels));
  expect("temperature",
         calibration_quality(logits, labels,
                             {.temperature = reading_of(readings, "temperature").value}));
  const auto scaled = logits * tensor_of(curves.at("calibrate/vector/scale")) +
                      tensor_of(curves.at("calibrate/vector/bias"));
  expect("vector", calibration_quality(scaled, labels));
  EXPECT_EQ(curves.size(), 11U);
}

TEST_F(Calibrate, FitsNoTemperatureToWhatIsAlwaysRight) {
  const auto logits = noise({40, 3}, 5);
  const auto readings =
      calibrate({.validation = dump("val.npz", logits, logits.argmax(1))}, context_);
  EXPECT_EQ(scalings_of(readings), std::set<std::string>{"none"});
  EXPECT_EQ(reading_of(readings, "nll").definition.at("temperature_status"), "unbounded");
  EXPECT_EQ(warnings_,
            std::vector<std::string>{"no temperature was fitted: every sample it would be fitted "
                                     "on is classified right, so that the NLL falls as T goes to "
                                     "0"});
}

TEST_F(Calibrate, FitsNoTemperatureToWhatIsWorseThanChance) {
  const auto logits = noise({400, 3}, 6);
  const auto readings =
      calibrate({.validation = dump("val.npz", logits, logits.argmin(1))}, context_);
  // A scale below 0 makes use of them, without end.
  EXPECT_EQ(scalings_of(readings), std::set<std::string>{"none"});
  EXPECT_EQ(reading_of(readings, "nll", {{"scaling", "none"}}).definition.at("temperature_status"),
            "at_chance");
  ASSERT_EQ(warnings_.size(), 2U);
  EXPECT_TRUE(warnings_[0].ends_with("than chance, so that the NLL falls as T goes to infinity"));
  EXPECT_TRUE(warnings_[1].starts_with("no scale and bias were fitted: with them every sample"));
}

TEST_F(Calibrate, FitsNoTemperatureToWhatSaysNothing) {
  const auto readings = calibrate(
      {.validation = dump("val.npz", torch::zeros({40, 3}), torch::arange(40) % 3)}, context_);
  EXPECT_TRUE(readings_of(readings, "temperature").empty());
  EXPECT_NEAR(reading_of(readings, "nll", {{"scaling", "none"}}).value, std::log(3), 1e-12);
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_TRUE(warnings_[0].ends_with("all equal, so that T changes nothing"));
}

TEST_F(Calibrate, AddsWhatItFindsToARun) {
  const auto path = folder_ / "run";
  run(tiny_config({R"(measure.names=["accuracy", "calibration"])", "data.validation_samples=100"}),
      path, kNoMetadata, {});
  const auto before = load_run(path).readings;
  const auto readings = calibrate({.run = path}, context_);
  EXPECT_TRUE(warnings_.empty());
  const auto after = load_run(path).readings;
  EXPECT_EQ(after.size(), before.size() + readings.size());
  // Before anything is fitted they are what the run has measured itself.
  EXPECT_NEAR(reading_of(readings, "ece", {{"scaling", "none"}}).value,
              reading_of(before, "ece").value, 1e-12);
  const auto curves = read_npz(folder_ / "run/curves.npz");
  EXPECT_TRUE(curves.contains("reliability/confidence"));
  EXPECT_TRUE(curves.contains("calibrate/vector/scale"));
  // Again, nothing is added twice.
  expect_same(calibrate({.run = path}, context_), readings);
  EXPECT_EQ(load_run(path).readings.size(), after.size());
}

TEST_F(Calibrate, OfTheWeightsOfARunIsThatOfTheRun) {
  const auto path = folder_ / "run";
  run(tiny_config({R"(measure.names=["accuracy"])"}), path, kNoMetadata, {});
  auto config = RunSettings::from(tiny_config()).resolved;
  config.set("init.pretrained", folder_ / "run/checkpoints/last/model.safetensors");
  expect_same(calibrate({.settings = config}, context_), calibrate({.run = path}, context_));
}

TEST_F(Calibrate, RefusesARunThatSomebodyIsAtWorkIn) {
  const auto path = folder_ / "run";
  run(tiny_config({R"(measure.names=["accuracy"])"}), path, kNoMetadata, {});
  const auto lock = RunLock::take(path);
  EXPECT_TRUE(error_of([&] { calibrate({.run = path}, context_); }).starts_with(path));
}

TEST_F(Calibrate, RefusesANetworkThatIsNoClassifier) {
  auto config = tiny_config({"train.loss=info_nce", "data.augment=flip", "measure.names=[]",
                             "measure.detectors=[\"neco\"]", "train.epochs=1"});
  run(config, folder_ / "run", kNoMetadata, {});
  EXPECT_EQ(error_of([&] { calibrate({.run = folder_ / "run"}, context_); }),
            "calibrate: needs a classifier, and train.loss=info_nce trains none");
}

TEST_F(Calibrate, RefusesARunAndADumpTogether) {
  EXPECT_EQ(error_of([&] { calibrate({.run = "run", .validation = "val.npz"}, context_); }),
            "calibrate: needs a run or a dump, got both");
}

class CalibrateResNet20 : public RealData {};

// Trained at T = 1, it is too sure of itself, as such networks are.
TEST_F(CalibrateResNet20, NeedsATemperatureAboveOne) {
  Config config;
  for (const char* each : {"model.name=resnet20", "data.name=cifar10", "data.train_samples=10",
                           "data.test_samples=1000", "data.normalisation=imagenet"}) {
    config.apply_override(each);
  }
  config.set("init.pretrained", (data_folder() / "weights/cifar10-resnet20.safetensors").string());
  RunContext context;
  context.data_folder = data_folder();
  const auto readings = calibrate({.settings = RunSettings::from(config).resolved}, context);
  const double temperature = reading_of(readings, "temperature").value;
  EXPECT_GT(temperature, 1.2);
  EXPECT_LT(temperature, 3);
  EXPECT_LT(reading_of(readings, "nll", {{"scaling", "temperature"}}).value,
            reading_of(readings, "nll", {{"scaling", "none"}}).value);
}

}  // namespace kelvin::calibrate_test
