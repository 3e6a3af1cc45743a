#include "kelvin/experiment/evaluate/calibration_data.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>
#include <string>
#include <vector>

#include "kelvin/core/text.h"
#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/run/run.h"
#include "kelvin/experiment/run/run_store.h"
#include "kelvin/formats/npz_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"
#include "tests/support/tiny_run.h"

namespace kelvin::calibration_data_test {

class CalibrationDumps : public testing::Test {
 protected:
  // Logits whose first column numbers the samples.
  std::string dump(const std::string& name, int64_t samples, int64_t classes = 3,
                   double temperature = 0) const {
    auto logits = noise({samples, classes}, 0);
    logits.select(1, 0).copy_(torch::arange(samples));
    Arrays arrays = {{"logits", array_of(logits)},
                     {"labels", array_of(torch::arange(samples) % 2)}};
    if (temperature > 0) {
      arrays["temperature"] = array_of(torch::tensor(temperature, torch::kFloat64));
    }
    write_npz(folder_ / name, arrays);
    return folder_ / name;
  }

  static std::set<int64_t> numbers(const LabelledLogits& data) {
    std::set<int64_t> found;
    for (int64_t i = 0; i < data.size(); ++i) {
      found.insert(data.logits[i][0].item<int64_t>());
      EXPECT_EQ(data.labels[i].item<int64_t>(), data.logits[i][0].item<int64_t>() % 2);
    }
    return found;
  }

  static CalibrateRequest request(const std::string& validation, const std::string& test = "",
                                  const std::vector<std::string>& settings = {}) {
    CalibrateRequest request{.validation = validation, .test = test};
    for (const auto& each : settings) request.settings.apply_override(each);
    return request;
  }

  TemporaryFolder folder_;
};

TEST_F(CalibrationDumps, AreFittedOnOneAndTestedOnTheOther) {
  const auto data =
      calibration_data(request(dump("val.npz", 5), dump("test.npz", 8), {"seed=1"}), {});
  EXPECT_EQ(data.fit.size(), 5);
  EXPECT_EQ(data.test.size(), 8);
  EXPECT_EQ(data.temperature, 1);
  EXPECT_EQ(data.bins, 15);
  EXPECT_EQ(data.fit_split, "validation");
  EXPECT_EQ(data.samples.at("fitted_on"), "val.npz");
  EXPECT_EQ(data.samples.at("fit_samples"), 5);
  EXPECT_EQ(data.samples.at("tested_on"), "test.npz");
  EXPECT_EQ(data.samples.at("samples"), 8);
  EXPECT_FALSE(data.samples.contains("halves_seed"));
}

TEST_F(CalibrationDumps, AreHalvedIfThereIsOnlyOne) {
  const auto file = dump("val.npz", 101);
  const auto data = calibration_data(request(file), {});
  const auto fit = numbers(data.fit);
  const auto test = numbers(data.test);
  EXPECT_EQ(fit.size(), 50U);
  EXPECT_EQ(test.size(), 51U);
  auto all = fit;
  all.insert(test.begin(), test.end());
  EXPECT_EQ(all.size(), 101U);
  EXPECT_EQ(data.samples.at("fitted_on"), "a random half of val.npz");
  EXPECT_EQ(data.samples.at("tested_on"), "the other half of val.npz");
  EXPECT_EQ(data.samples.at("halves_seed"), 0);
  EXPECT_EQ(numbers(calibration_data(request(file), {}).fit), fit);
  EXPECT_NE(numbers(calibration_data(request(file, "", {"seed=1"}), {}).fit), fit);
}

TEST_F(CalibrationDumps, HaveATemperatureOfTheirOwn) {
  const auto validation = dump("val.npz", 4, 3, 10);
  EXPECT_EQ(calibration_data(request(validation), {}).temperature, 10);
  EXPECT_EQ(calibration_data(request(validation, "", {"measure.temperature=2"}), {}).temperature,
            2);
  const auto test = dump("test.npz", 4);
  EXPECT_EQ(error_of([&] { calibration_data(request(validation, test), {}); }),
            test + ": 'temperature' must be that of val.npz, 10, got 1");
  EXPECT_EQ(calibration_data(request(validation, test, {"measure.temperature=2"}), {}).temperature,
            2);
}

TEST_F(CalibrationDumps, AreRefusedInOneLine) {
  const auto validation = dump("val.npz", 40);
  const auto wide = dump("wide.npz", 4, 5);
  const auto lonely = dump("lonely.npz", 1);
  EXPECT_EQ(error_of([&] { calibration_data(request(validation, wide), {}); }),
            wide + ": 'logits' must have as many classes as val.npz, 3, got 5");
  EXPECT_EQ(error_of([&] { calibration_data(request(lonely), {}); }),
            "calibrate: needs at least 2 samples, one to fit on and one to test on, got 1");
  const std::vector<std::pair<std::string, std::string>> settings = {
      {"measure.calibration.bins=0", "measure.calibration.bins: must be from 1 to 65536, got 0"},
      {"measure.calibration.bin=3", "measure.calibration.bin: no such setting"},
      {"measure.temperature=-1", "measure.temperature: must be a finite number, not below 0"},
      {"measure.names=[]", "measure.names: no such setting"},
      {"train.lr=3", "train.lr: "},
      {"seed=-1", "seed: must not be below 0, got -1"},
      {"measure.memory=1KiB", "measure.memory: calibrating needs "},
  };
  for (const auto& [setting, message] : settings) {
    const auto error =
        error_of([&, &given = setting] { calibration_data(request(validation, "", {given}), {}); });
    EXPECT_TRUE(error.starts_with(message)) << error;
  }
}

TEST_F(CalibrationDumps, SayHowMuchMemoryTheyTakeIfItIsMuch) {
  std::vector<std::string> said;
  RunContext context;
  context.inform = [&](const std::string& text) { said.push_back(text); };
  const auto validation = dump("val.npz", 40);
  calibration_data(request(validation), context);
  EXPECT_EQ(said, std::vector<std::string>());

  const auto error =
      error_of([&] { calibration_data(request(validation, "", {"measure.memory=1KiB"}), {}); });
  const auto begin = error.find("needs ") + 6;
  const auto needed = bytes_of(error.substr(begin, error.find(" for ") - begin), "needed");
  const auto memory = "measure.memory=" + std::to_string(2 * needed) + "B";
  calibration_data(request(validation, "", {memory}), context);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_TRUE(said[0].starts_with("calibrating holds at most ")) << said[0];
  EXPECT_TRUE(said[0].ends_with(" allowed")) << said[0];
}

class CalibrationOfARun : public testing::Test {
 protected:
  std::filesystem::path trained(std::vector<std::string> settings) const {
    settings.emplace_back(R"(measure.names=["accuracy"])");
    run(tiny_config(settings), folder_ / "run", kNoMetadata, {});
    return folder_ / "run";
  }

  TemporaryFolder folder_;
};

TEST_F(CalibrationOfARun, IsFittedOnItsValidationSplit) {
  const auto data =
      calibration_data({.run = trained({"data.validation_samples=40"})}, RunContext());
  EXPECT_EQ(data.fit.size(), 40);
  EXPECT_EQ(data.test.size(), 128);
  EXPECT_EQ(data.fit.logits.size(1), 10);
  EXPECT_EQ(data.temperature, 2);
  EXPECT_EQ(data.fit_split, "validation");
  EXPECT_EQ(data.samples.at("fitted_on"), "the validation split");
  EXPECT_EQ(data.samples.at("tested_on"), "the test split");
}

TEST_F(CalibrationOfARun, IsFittedOnHalfOfItsTestSplitWithoutOne) {
  const auto data = calibration_data({.run = trained({})}, RunContext());
  EXPECT_EQ(data.fit.size(), 64);
  EXPECT_EQ(data.test.size(), 64);
  EXPECT_EQ(data.fit_split, "test");
  EXPECT_EQ(data.samples.at("fitted_on"), "a random half of the test split");
  EXPECT_EQ(data.samples.at("halves_seed"), 1);
}

// Nothing is tested on what it was fitted on.
TEST_F(CalibrationOfARun, IsFittedOnHalfOfItsValidationSplitIfThatIsTestedOn) {
  const auto data = calibration_data(
      {.run = trained({"data.validation_samples=40", "data.test_on=validation"})}, RunContext());
  EXPECT_EQ(data.fit.size(), 20);
  EXPECT_EQ(data.test.size(), 20);
  EXPECT_EQ(data.samples.at("fitted_on"), "a random half of the validation split");
}

TEST_F(CalibrationOfARun, OfWeightsWarnsThatValidationImagesMayBeKnown) {
  const auto weights = trained({}) / "checkpoints/last/model.safetensors";
  auto config = RunSettings::from(tiny_config({"data.validation_samples=40"})).resolved;
  config.set("init.pretrained", weights.string());
  std::vector<std::string> warnings;
  RunContext context;
  context.warn = [&](const std::string& text) { warnings.push_back(text); };
  const auto data = calibration_data({.settings = config}, context);
  EXPECT_EQ(data.fit.size(), 40);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(warnings[0].starts_with("data.validation_samples: ")) << warnings[0];
}

TEST_F(CalibrationOfARun, EndsIfItIsAskedTo) {
  const CalibrateRequest request{.run = trained({})};
  RunContext context;
  context.should_stop = [] { return true; };
  EXPECT_EQ(error_of([&] { calibration_data(request, context); }),
            "stopped while calibrating; nothing written");
}

}  // namespace kelvin::calibration_data_test
