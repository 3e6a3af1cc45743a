#include "kelvin/experiment/progress_observer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <vector>

namespace kelvin {
namespace {

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

}  // namespace
}  // namespace kelvin
