#include "kelvin/train/temperature_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

constexpr int64_t kTotal = 41;
constexpr int64_t kPerEpoch = 4;

double at(const TemperatureOptions& options, int64_t step) {
  return temperature_at(options, step, kTotal, kPerEpoch);
}

TemperatureOptions from_100_to_1(TemperatureSchedule schedule) {
  return {.first = 100, .schedule = schedule, .last = 1, .factor = 0.1, .period_epochs = 2};
}

TEST(Temperature, StaysWhenConstantOrWhereALearnedOneStarts) {
  for (const auto schedule : {TemperatureSchedule::constant, TemperatureSchedule::learned}) {
    for (int64_t step = 0; step < kTotal; ++step) EXPECT_EQ(at(from_100_to_1(schedule), step), 100);
  }
}

TEST(Temperature, GoesStraightToItsEnd) {
  const auto options = from_100_to_1(TemperatureSchedule::linear);
  EXPECT_DOUBLE_EQ(at(options, 0), 100);
  EXPECT_DOUBLE_EQ(at(options, 10), 75.25);
  EXPECT_DOUBLE_EQ(at(options, 40), 1);
}

TEST(Temperature, GoesAlongACosine) {
  const auto options = from_100_to_1(TemperatureSchedule::cosine);
  EXPECT_DOUBLE_EQ(at(options, 0), 100);
  EXPECT_NEAR(at(options, 10), 1 + 99 * 0.5 * (1 + std::sqrt(0.5)), 1e-12);
  EXPECT_NEAR(at(options, 20), 50.5, 1e-12);
  EXPECT_NEAR(at(options, 40), 1, 1e-12);
}

TEST(Temperature, IsMultipliedAfterEachPeriod) {
  const auto options = from_100_to_1(TemperatureSchedule::step);
  EXPECT_DOUBLE_EQ(at(options, 7), 100);
  EXPECT_DOUBLE_EQ(at(options, 8), 10);
  EXPECT_DOUBLE_EQ(at(options, 16), 1);
  EXPECT_NEAR(at(options, 24), 0.1, 1e-15);
}

TEST(Temperature, GoesToItsEndAndBackInEachPeriod) {
  const auto options = from_100_to_1(TemperatureSchedule::cyclic);
  for (const int64_t begin : {0, 8, 16}) {
    EXPECT_DOUBLE_EQ(at(options, begin), 100);
    EXPECT_DOUBLE_EQ(at(options, begin + 2), 50.5);
    EXPECT_DOUBLE_EQ(at(options, begin + 4), 1);
    EXPECT_DOUBLE_EQ(at(options, begin + 6), 50.5);
  }
}

TEST(Temperature, WarmsUpEvenlyInItsLogarithm) {
  const TemperatureOptions options{
      .first = 0.01, .schedule = TemperatureSchedule::warm, .last = 100, .period_epochs = 2};
  EXPECT_DOUBLE_EQ(at(options, 0), 0.01);
  EXPECT_NEAR(at(options, 2), 0.1, 1e-12);
  EXPECT_NEAR(at(options, 4), 1, 1e-12);
  EXPECT_DOUBLE_EQ(at(options, 8), 100);
  EXPECT_DOUBLE_EQ(at(options, 40), 100);
}

TEST(Temperature, IsThatOfItsStartIfThereIsOneStep) {
  for (const auto schedule : {TemperatureSchedule::linear, TemperatureSchedule::cosine}) {
    EXPECT_DOUBLE_EQ(temperature_at(from_100_to_1(schedule), 0, 1, 1), 100);
  }
}

TEST(Temperature, MustBeAboveZeroAllTheTime) {
  auto options = from_100_to_1(TemperatureSchedule::linear);
  options.last = 0;
  EXPECT_EQ(
      error_of([&] { check_temperatures(options, kTotal, kPerEpoch); }),
      "train: at the end of its schedule: temperature must be a finite number above 0, got 0");
  options = from_100_to_1(TemperatureSchedule::step);
  options.factor = 1e-200;
  EXPECT_EQ(error_of([&] { check_temperatures(options, kTotal, kPerEpoch); }),
            "train: at the last step: temperature must be a finite number above 0, got 0");
  options.factor = 1;
  options.period_epochs = 0;
  EXPECT_EQ(error_of([&] { check_temperatures(options, kTotal, kPerEpoch); }),
            "train: the period of the temperature must be above 0 epochs, got 0");
}

TEST(TemperatureSchedule, IsKnownByName) {
  EXPECT_EQ(temperature_schedule_of("warm"), TemperatureSchedule::warm);
  EXPECT_EQ(temperature_schedule_of("learned"), TemperatureSchedule::learned);
  EXPECT_EQ(error_of([] { temperature_schedule_of("hot"); }),
            "train.temperature_schedule: must be constant, linear, cosine, step, cyclic, warm or "
            "learned, got 'hot'");
}

}  // namespace
}  // namespace kelvin
