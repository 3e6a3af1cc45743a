#include "kelvin/experiment/run/stall_detector.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "tests/support/train_state.h"

namespace kelvin::stall_detector_test {

class StallDetectorTest : public testing::Test {
 protected:
  // `share` of ln C is the entropy of all outputs from step `begin` up to `end`.
  void train(StallDetector& detector, int64_t begin, int64_t end, double share) {
    for (int64_t step = begin + 1; step <= end; ++step) {
      auto state = training_.at(step);
      state.entropy = share * std::log(10);
      state.loss = state.entropy;
      state.accuracy = 0.12;
      state.temperature = 1000;
      detector.after_step(state);
    }
  }

  ObservedTraining training_;
  StallDetector detector_{10, training_.log};
};

TEST_F(StallDetectorTest, SpeaksOnceAfterTwoSpansOfUniformOutputs) {
  detector_.before_training(training_.at(0));  // spans of 10 of 200 steps
  train(detector_, 0, 19, 0.999);
  EXPECT_FALSE(detector_.is_stalled());
  train(detector_, 19, 60, 0.999);
  EXPECT_TRUE(detector_.is_stalled());
  ASSERT_EQ(training_.warnings.size(), 1U);
  for (const char* part : {"step 20:", "99.9 % of ln C", "loss 2.3", "ln C = 2.3026", "12 %",
                           "T = 1000", "lr = 0.1", "--lr-scale-with-t"}) {
    EXPECT_NE(training_.warnings[0].find(part), std::string::npos)
        << part << " in " << training_.warnings[0];
  }
}

TEST_F(StallDetectorTest, SaysWhenThePlateauIsLeft) {
  detector_.before_training(training_.at(0));
  train(detector_, 0, 30, 1);
  train(detector_, 30, 50, 0.9);
  EXPECT_FALSE(detector_.is_stalled());
  ASSERT_EQ(training_.warnings.size(), 2U);
  EXPECT_EQ(training_.warnings[1], "step 40: training left the plateau of uniform outputs");
}

TEST_F(StallDetectorTest, IsSilentWhereOutputsDiffer) {
  detector_.before_training(training_.at(0));
  train(detector_, 0, 10, 1);  // one span may start there
  train(detector_, 10, 200, 0.99);
  EXPECT_TRUE(training_.warnings.empty());
}

TEST_F(StallDetectorTest, KeepsItsNotesInTheRun) {
  detector_.before_training(training_.at(0));
  train(detector_, 0, 20, 1);
  const auto note = nlohmann::json::parse(whole_file(training_.run.path() / "notes.jsonl"));
  EXPECT_EQ(note.at("step"), 20);
  EXPECT_EQ(note.at("note"), training_.warnings.at(0));
}

}  // namespace kelvin::stall_detector_test
