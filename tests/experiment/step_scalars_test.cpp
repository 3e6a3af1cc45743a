#include "kelvin/experiment/step_scalars.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support/train_state.h"

namespace kelvin {
namespace {

std::string events_of(const ObservedTraining& training) {
  for (const auto& entry : std::filesystem::directory_iterator(training.run.path())) {
    if (entry.path().filename().string().starts_with("events.out.tfevents")) {
      return whole_file(entry.path());
    }
  }
  return "";
}

TEST(StepScalars, AreWrittenEveryTenthStep) {
  ObservedTraining training;
  StepScalars scalars(training.log);
  const auto before = events_of(training).size();
  for (int64_t step = 1; step < 10; ++step) scalars.after_step(training.at(step));
  EXPECT_EQ(events_of(training).size(), before);
  scalars.after_step(training.at(10));
  const auto once = events_of(training);
  for (const char* name : {"batch/loss", "batch/entropy", "batch/lr", "batch/temperature"}) {
    EXPECT_NE(once.find(name), std::string::npos) << name;
  }
  for (int64_t step = 11; step <= 20; ++step) scalars.after_step(training.at(step));
  EXPECT_EQ(events_of(training).size() - once.size(), once.size() - before);
}

// As float32 in the bytes of the event.
TEST(StepScalars, AreMeansOverTheStepsBetween) {
  ObservedTraining training;
  StepScalars scalars(training.log);
  for (int64_t step = 1; step <= 10; ++step) {
    auto state = training.at(step);
    state.loss = static_cast<double>(step);
    scalars.after_step(state);
  }
  const float mean = 5.5F;
  const std::string bytes(reinterpret_cast<const char*>(&mean), sizeof mean);
  EXPECT_NE(events_of(training).find("batch/loss\x15" + bytes), std::string::npos);
}

}  // namespace
}  // namespace kelvin
