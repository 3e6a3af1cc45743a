#include "kelvin/measures/calibration.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "kelvin/numerics/calibration.h"
#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/tensors.h"

namespace kelvin::calibration_test {

CalibrationQuality some_quality() {
  return {.samples = 3,
          .classes = 4,
          .nll = 0.5,
          .brier = 0.25,
          .ece = 0.125,
          .ece_equal_mass = 0.0625,
          .ece_classwise = 0.03125,
          .mce = 0.75,
          .reliability = {.count = doubles({1, 2}),
                          .confidence = doubles({0.4, 0.9}),
                          .accuracy = doubles({0, 0.5})}};
}

TEST(CalibrationReadings, HaveWhatTheyShareAndWhatIsTheirOwn) {
  const auto readings = calibration_readings(some_quality(), {{"samples", 3}, {"scaling", "none"}});
  ASSERT_EQ(readings.size(), 6U);
  for (const auto& reading : readings) {
    EXPECT_EQ(reading.split, "test");
    EXPECT_EQ(reading.definition.at("samples"), 3);
    EXPECT_EQ(reading.definition.at("scaling"), "none");
    EXPECT_TRUE(reading.definition.at("statistic").is_string());
  }
  EXPECT_EQ(reading_of(readings, "nll").value, 0.5);
  EXPECT_EQ(reading_of(readings, "brier", {{"upper_bound", 2}}).value, 0.25);
  EXPECT_EQ(reading_of(readings, "ece", {{"bins", 2}, {"upper_bound", 1}}).value, 0.125);
  EXPECT_EQ(reading_of(readings, "ece_equal_mass", {{"bins", 2}}).value, 0.0625);
  EXPECT_EQ(reading_of(readings, "ece_classwise", {{"upper_bound", 0.5}}).value, 0.03125);
  EXPECT_EQ(reading_of(readings, "mce", {{"bins", 2}}).value, 0.75);
}

// Each class off by as much as is possible: the mean over classes is 2 / C.
TEST(CalibrationReadings, ClasswiseErrorReachesItsBound) {
  const auto quality =
      calibration_quality(torch::tensor({{1e6, 0.0, 0.0, 0.0}}, torch::kFloat64), labels_of({1}));
  const auto reading = reading_of(calibration_readings(quality, {{"samples", 1}}), "ece_classwise");
  EXPECT_DOUBLE_EQ(reading.value, reading.definition.at("upper_bound").get<double>());
}

TEST(CalibrationReadings, NameTheCurvesOfADiagram) {
  const auto curves = reliability_curves(some_quality().reliability, "calibrate/none");
  ASSERT_EQ(curves.size(), 3U);
  expect_close(curves.at("calibrate/none/confidence"), doubles({0.4, 0.9}), 0);
  expect_close(curves.at("calibrate/none/accuracy"), doubles({0, 0.5}), 0);
  expect_close(curves.at("calibrate/none/count"), doubles({1, 2}), 0);
}

Record noisy_record(int64_t samples = 90, Split split = Split::test) {
  const auto logits = 4 * noise({samples, 5}, 0);
  return record_of(logits.to(torch::kFloat32), (logits + 5 * noise({samples, 5}, 1)).argmax(1),
                   split);
}

TEST(CalibrationMeasure, GivesTheNumbersOfTheTestSplit) {
  const auto record = noisy_record();
  const auto readings = measured("calibration", {record}, {{"bins", 10}}, {.temperature = 2});
  const auto quality =
      calibration_quality(record.logits, record.labels, {.temperature = 2, .bins = 10});
  const std::map<std::string, double> expected = {{"nll", quality.nll},
                                                  {"brier", quality.brier},
                                                  {"ece", quality.ece},
                                                  {"ece_equal_mass", quality.ece_equal_mass},
                                                  {"ece_classwise", quality.ece_classwise},
                                                  {"mce", quality.mce}};
  EXPECT_EQ(readings.size(), expected.size());
  for (const auto& [name, value] : expected) {
    const auto reading = reading_of(readings, name, {{"temperature", 2.0}, {"samples", 90}});
    EXPECT_EQ(reading.value, value) << name;
    EXPECT_EQ(reading.split, "test");
  }
  for (const char* name : {"ece", "ece_equal_mass", "ece_classwise", "mce"}) {
    EXPECT_EQ(reading_of(readings, name).definition.at("bins"), 10);
  }
}

TEST(CalibrationMeasure, HasFifteenBinsUnlessToldOtherwise) {
  const auto readings = measured("calibration", {noisy_record()});
  EXPECT_EQ(reading_of(readings, "ece").definition.at("bins"), 15);
}

TEST(CalibrationMeasure, IsTheLikelihoodThatAccuracyHas) {
  const auto record = noisy_record();
  const MeasureContext context{.temperature = 3};
  EXPECT_NEAR(reading_of(measured("calibration", {record}, {}, context), "nll").value,
              reading_of(measured("accuracy", {record}, {}, context), "nll").value, 1e-14);
}

TEST(CalibrationMeasure, IgnoresTrainingAndOodSamples) {
  auto ood = noisy_record(30);
  ood.ood = "textures";
  expect_same(measured("calibration", {noisy_record(), ood, noisy_record(20, Split::train)}),
              measured("calibration", {noisy_record()}));
}

TEST(CalibrationMeasure, DrawsAReliabilityDiagram) {
  const auto measure = make_measure("calibration", {{"bins", 4}});
  EXPECT_TRUE(measure->curves().empty());
  const auto record = noisy_record();
  show(*measure, {record});
  const auto curves = measure->curves();
  EXPECT_EQ(curves.size(), 3U);
  const auto& count = curves.at("reliability/count");
  EXPECT_EQ(count.sizes(), torch::IntArrayRef({4}));
  EXPECT_EQ(count.sum().item<double>(), 90);
  const auto right = (record.logits.argmax(1) == record.labels).sum().item<double>();
  EXPECT_NEAR((count * curves.at("reliability/accuracy")).sum().item<double>(), right, 1e-10);
  const auto confidences = torch::softmax(record.logits.to(torch::kFloat64), 1).amax(1);
  EXPECT_NEAR((count * curves.at("reliability/confidence")).sum().item<double>(),
              confidences.sum().item<double>(), 1e-10);
}

TEST(CalibrationMeasure, CountsItsMemory) {
  const auto measure = make_measure("calibration");
  EXPECT_EQ(measure->memory(noisy_record(), 1000), CalibrationSums::bytes(5, 1000, 15));
}

TEST(CalibrationMeasure, RejectsBinsThatAreNone) {
  EXPECT_EQ(error_of([] {
              make_measure("calibration", {{"bins", 0}});
            }),
            "measure.calibration.bins: must be from 1 to 65536, got 0");
}

TEST(CalibrationMeasure, RejectsAnEmptyStream) {
  EXPECT_EQ(error_of([] { measured("calibration", {noisy_record(9, Split::train)}); }),
            "calibration: no records of the test split were shown");
}

}  // namespace kelvin::calibration_test
