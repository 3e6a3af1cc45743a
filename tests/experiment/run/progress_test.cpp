#include "kelvin/experiment/run/progress.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <vector>

#include "tests/support/train_state.h"

namespace kelvin::progress_test {

// A clock in the test's hand, and all that was reported.
class ProgressObserverTest : public testing::Test {
 protected:
  ProgressObserverTest() {
    context_.seconds = [this] { return now_; };
    context_.report_progress = [this](const Progress& progress) { reports_.push_back(progress); };
  }

  static std::shared_ptr<Model> small_model() {
    Settings settings("model", {{"width", 2}, {"depth", 1}});
    return models().find("mlp").build({.height = 1, .width = 1}, settings);
  }

  void step_at(double seconds) {
    now_ = seconds;
    ++state_.step;
    state_.images += 50;
    observer_.after_step(state_);
  }

  double now_ = 100;
  std::vector<Progress> reports_;
  RunContext context_;
  std::shared_ptr<Model> model_ = small_model();
  TrainOptions options_;
  TrainState state_{.model = *model_, .options = options_, .total_steps = 5, .loss = 3.14159};
  ProgressObserver observer_{context_};
};

TEST_F(ProgressObserverTest, ReportsTenTimesASecondAtMost) {
  observer_.before_training(state_);
  step_at(100.05);
  EXPECT_TRUE(reports_.empty());
  step_at(100.2);
  EXPECT_EQ(reports_.size(), 1U);
  step_at(100.25);
  EXPECT_EQ(reports_.size(), 1U);
  step_at(100.4);
  EXPECT_EQ(reports_.size(), 2U);
}

TEST_F(ProgressObserverTest, SaysHowFarAndHowFast) {
  observer_.before_training(state_);
  step_at(100.2);
  step_at(100.5);
  ASSERT_EQ(reports_.size(), 2U);
  EXPECT_EQ(reports_[1].phase, "train");
  EXPECT_EQ(reports_[1].done, 2);
  EXPECT_EQ(reports_[1].total, 5);
  EXPECT_DOUBLE_EQ(reports_[1].images_per_second, 200);
  EXPECT_EQ(reports_[1].note, "loss 3.14");
}

TEST_F(ProgressObserverTest, AlwaysReportsTheLastStep) {
  observer_.before_training(state_);
  for (int i = 0; i < 5; ++i) step_at(100.01);
  ASSERT_EQ(reports_.size(), 1U);
  EXPECT_EQ(reports_[0].done, 5);
}

TEST_F(ProgressObserverTest, ReportsNoSpeedWhenTheClockStandsStill) {
  observer_.before_training(state_);
  for (int i = 0; i < 5; ++i) step_at(100);
  ASSERT_EQ(reports_.size(), 1U);
  EXPECT_EQ(reports_[0].images_per_second, 0);
}

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

}  // namespace kelvin::progress_test
