#include "kelvin/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <sstream>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/python.h"

namespace kelvin::schedule_test {

TEST(LearningRate, RisesLinearlyToTheRateInTheWarmUp) {
  for (const auto schedule : {Schedule::constant, Schedule::cosine}) {
    const LearningRateOptions options{
        .learning_rate = 0.4, .schedule = schedule, .warmup_steps = 4, .total_steps = 20};
    EXPECT_DOUBLE_EQ(learning_rate(options, 0), 0.1);
    EXPECT_DOUBLE_EQ(learning_rate(options, 1), 0.2);
    EXPECT_DOUBLE_EQ(learning_rate(options, 2), 0.3);
    EXPECT_DOUBLE_EQ(learning_rate(options, 3), 0.4);
    EXPECT_DOUBLE_EQ(learning_rate(options, 4), 0.4);
  }
}

TEST(LearningRate, StartsAtTheRateWithoutAWarmUp) {
  EXPECT_EQ(learning_rate({.learning_rate = 0.3, .total_steps = 5}, 0), 0.3);
}

TEST(LearningRate, StaysWhenConstant) {
  const LearningRateOptions options{
      .learning_rate = 0.3, .schedule = Schedule::constant, .total_steps = 9};
  for (int64_t step = 0; step < 9; ++step) EXPECT_EQ(learning_rate(options, step), 0.3);
}

TEST(LearningRate, FollowsHalfACosineAfterTheWarmUp) {
  const LearningRateOptions options{
      .learning_rate = 2, .schedule = Schedule::cosine, .warmup_steps = 10, .total_steps = 110};
  EXPECT_NEAR(learning_rate(options, 10 + 25), 1 + std::sqrt(0.5), 1e-14);
  EXPECT_NEAR(learning_rate(options, 10 + 50), 1, 1e-14);
  EXPECT_NEAR(learning_rate(options, 10 + 75), 1 - std::sqrt(0.5), 1e-14);
  // One step before zero: 1 - cos(x) = 2 sin(x / 2)^2.
  const double half = std::sin(std::numbers::pi / 200);
  EXPECT_NEAR(learning_rate(options, 109), 2 * half * half, 1e-14);
}

TEST(LearningRate, NeverRisesAfterTheWarmUpNorReachesZero) {
  const LearningRateOptions options{
      .learning_rate = 0.1, .schedule = Schedule::cosine, .warmup_steps = 3, .total_steps = 40};
  for (int64_t step = 4; step < 40; ++step) {
    EXPECT_LT(learning_rate(options, step), learning_rate(options, step - 1));
    EXPECT_GT(learning_rate(options, step), 0);
  }
}

TEST(LearningRate, OnlyRisesIfTheWarmUpIsLongerThanTraining) {
  const LearningRateOptions options{
      .learning_rate = 1, .schedule = Schedule::cosine, .warmup_steps = 10, .total_steps = 5};
  EXPECT_DOUBLE_EQ(learning_rate(options, 0), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(options, 4), 0.5);
}

TEST(LearningRate, FallsAtEachMilestone) {
  const LearningRateOptions options{.learning_rate = 0.4,
                                    .schedule = Schedule::step,
                                    .warmup_steps = 2,
                                    .total_steps = 10,
                                    .milestones = {4, 7},
                                    .decay = 0.1};
  const std::vector<double> expected = {0.2, 0.4, 0.4, 0.4, 0.04, 0.04, 0.04, 0.004, 0.004, 0.004};
  for (size_t step = 0; step < expected.size(); ++step) {
    EXPECT_NEAR(learning_rate(options, static_cast<int64_t>(step)), expected[step], 1e-15);
  }
}

TEST(LearningRate, GoesThroughOneCycleAsInPyTorch) {
  const auto text = python_output(R"(
import torch
parameter = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([parameter], lr=1)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.7, total_steps=40)
for step in range(40):
    print(repr(optimizer.param_groups[0]['lr']))
    optimizer.step()
    if step < 39: schedule.step()
)");
  std::istringstream lines(text);
  const LearningRateOptions options{
      .learning_rate = 0.7, .schedule = Schedule::one_cycle, .total_steps = 40};
  for (int64_t step = 0; step < 40; ++step) {
    double expected = 0;
    lines >> expected;
    EXPECT_NEAR(learning_rate(options, step), expected, 1e-12) << step;
  }
}

TEST(LearningRate, OfACycleOfFewStepsStaysInItsBounds) {
  for (int64_t total = 1; total < 8; ++total) {
    const LearningRateOptions options{
        .learning_rate = 1, .schedule = Schedule::one_cycle, .total_steps = total};
    for (int64_t step = 0; step < total; ++step) {
      EXPECT_GT(learning_rate(options, step), 0) << total << " " << step;
      EXPECT_LE(learning_rate(options, step), 1) << total << " " << step;
    }
  }
}

TEST(LearningRate, RejectsStepsOutsideOfTraining) {
  const LearningRateOptions options{.total_steps = 5};
  EXPECT_EQ(error_of([&] { learning_rate(options, 5); }),
            "learning_rate: step must be in [0, 5), got 5");
  EXPECT_EQ(error_of([&] { learning_rate(options, -1); }),
            "learning_rate: step must be in [0, 5), got -1");
}

TEST(Schedule, IsKnownByName) {
  EXPECT_EQ(schedule_of("constant"), Schedule::constant);
  EXPECT_EQ(schedule_of("cosine"), Schedule::cosine);
  EXPECT_EQ(schedule_of("step"), Schedule::step);
  EXPECT_EQ(schedule_of("one-cycle"), Schedule::one_cycle);
}

TEST(Schedule, RejectsOtherNames) {
  EXPECT_EQ(error_of([] { schedule_of("linear"); }),
            "train.schedule: must be constant, cosine, step or one-cycle, got 'linear'");
}

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

}  // namespace kelvin::schedule_test
