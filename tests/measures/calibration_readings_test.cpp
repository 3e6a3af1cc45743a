#include "kelvin/measures/calibration_readings.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/measured.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

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

}  // namespace
}  // namespace kelvin
