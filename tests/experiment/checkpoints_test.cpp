#include "kelvin/experiment/checkpoints.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <set>

#include "tests/support/errors.h"
#include "tests/support/train_state.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

class CheckpointsTest : public testing::Test {
 protected:
  Checkpoints checkpoints(const CheckpointSettings& settings = {}) {
    return {training_.run,
            settings,
            training_.log,
            {.seconds = [] { return 5.0; },
             .test_accuracy = [this] { return accuracy_; },
             .stalls = [] { return StallDetector::Sums{.uniform_spans = 1, .is_stalled = true}; }}};
  }

  std::set<std::string> folders() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(training_.run.path() / "checkpoints")) {
      if (!entry.is_symlink()) names.insert(entry.path().filename().string());
    }
    return names;
  }

  std::string target(const char* link) const {
    return fs::read_symlink(training_.run.path() / "checkpoints" / link).string();
  }

  ObservedTraining training_;
  double accuracy_ = 0.5;
};

using Names = std::set<std::string>;

TEST_F(CheckpointsTest, KeepTheOneBeforeWeightsThatAreNotFinite) {
  auto observer = checkpoints({.steps = 5});
  observer.after_epoch(training_.at(10));
  auto state = training_.at(15);
  state.snapshot = [] {
    return TrainSnapshot{.step = 15, .weights = {{"fc.weight", torch::full({2}, INFINITY)}}};
  };
  EXPECT_EQ(error_of([&] { observer.after_step(state); }),
            "train: 'fc.weight' is not finite after step 15 (T = 1, lr = 0.1), so the checkpoint "
            "before it is kept; try a smaller lr or a longer warm-up");
  EXPECT_EQ(target("last"), "step-10");
}

TEST_F(CheckpointsTest, AreSavedAfterEachEpochAndKeepTheLastAndTheBest) {
  auto observer = checkpoints();
  observer.after_epoch(training_.at(10));
  accuracy_ = 0.8;
  observer.after_epoch(training_.at(20));
  accuracy_ = 0.6;
  observer.after_epoch(training_.at(30));
  observer.after_epoch(training_.at(40));
  EXPECT_EQ(folders(), (Names{"step-20", "step-40"}));
  EXPECT_EQ(target("last"), "step-40");
  EXPECT_EQ(target("best"), "step-20");
  const auto last = last_checkpoint(training_.run.path()).value();
  EXPECT_EQ(last.best_accuracy, 0.8);
  EXPECT_EQ(last.seconds, 5);
}

TEST_F(CheckpointsTest, AreAllKeptIfAskedTo) {
  auto observer = checkpoints({.keeps_all = true});
  for (const int64_t step : {10, 20, 30}) observer.after_epoch(training_.at(step));
  EXPECT_EQ(folders(), (Names{"step-10", "step-20", "step-30"}));
}

TEST_F(CheckpointsTest, AreSavedEverySoManySteps) {
  auto observer = checkpoints({.steps = 4, .keeps_all = true});
  for (int64_t step = 1; step <= 20; ++step) {
    observer.after_step(training_.at(step));
    if (step % 10 == 0) observer.after_epoch(training_.at(step));
  }
  EXPECT_EQ(folders(), (Names{"step-4", "step-8", "step-10", "step-12", "step-16", "step-20"}));
}

TEST_F(CheckpointsTest, AreSavedWhenTrainingIsStopped) {
  auto observer = checkpoints();
  observer.after_epoch(training_.at(10));
  observer.at_stop(training_.at(13));
  EXPECT_EQ(target("last"), "step-13");
  EXPECT_EQ(target("best"), "step-10");
}

TEST_F(CheckpointsTest, KnowTheSizesOfWhatWasLogged) {
  training_.log.add_metrics({{"step", 0}, {"loss", 1.5}});
  auto observer = checkpoints();
  observer.after_epoch(training_.at(10));
  training_.log.add_metrics({{"step", 12}, {"loss", 1.25}});
  const auto last = last_checkpoint(training_.run.path()).value();
  RunLog::cut_back(training_.run.path(), last.sizes);
  EXPECT_EQ(whole_file(training_.run.path() / "metrics.jsonl"), "{\"step\":0,\"loss\":1.5}\n");
}

// Rewriting the folder that `last` points at would lose it to a crash in between.
TEST_F(CheckpointsTest, AreNotWrittenAgainWhereTheRunGoesOnFrom) {
  auto first = checkpoints();
  first.at_stop(training_.at(10));
  const auto before = fs::last_write_time(training_.run.path() / "checkpoints/step-10");
  auto second = checkpoints();
  second.start_from(last_checkpoint(training_.run.path()).value());
  second.after_epoch(training_.at(10));
  EXPECT_EQ(fs::last_write_time(training_.run.path() / "checkpoints/step-10"), before);
  EXPECT_EQ(target("best"), "step-10");
}

// A kill between the two links must not lose the best one.
TEST_F(CheckpointsTest, LinkTheBestBeforeTheLast) {
  auto observer = checkpoints();
  observer.after_epoch(training_.at(10));
  accuracy_ = 0.9;
  // A link that cannot be made ends the saving right there.
  fs::create_directories(training_.run.path() / "checkpoints/last.part/not empty");
  EXPECT_THROW(observer.after_epoch(training_.at(20)), Error);
  fs::remove_all(training_.run.path() / "checkpoints/last.part");
  EXPECT_EQ(target("best"), "step-20");
  EXPECT_EQ(target("last"), "step-10");
  EXPECT_EQ(last_checkpoint(training_.run.path())->best_accuracy, 0.5);
}

}  // namespace
}  // namespace kelvin
