#include "kelvin/runs/prune.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "kelvin/runs/run_folder.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/fake_run.h"
#include "tests/support/run_files.h"

namespace kelvin::prune_test {

namespace fs = std::filesystem;

constexpr auto kUncertain =
    "checkpoints left alone: last or best is missing or leads to no weights";

// A finished run with three checkpoints, the last of which is linked.
class PruneRun : public testing::Test {
 protected:
  PruneRun() {
    write_fake_run(run_, 1, 0, 90);
    for (const char* name : {"step-5", "step-10", "step-15"}) write_fake_checkpoint(run_, name);
    link_fake_checkpoint(run_, "last", "step-15");
  }

  // What pruning removes, by paths from the run; fails if the disk does not agree.
  std::set<std::string> removed_by(const PruneOptions& options = {}) {
    const auto before = paths_below(run_);
    const auto pruned = prune_run(run_, options);
    note_ = pruned.note;
    bytes_ = pruned.bytes();
    std::set<std::string> removed;
    for (const auto& entry : pruned.removed) {
      removed.insert(entry.path.lexically_relative(run_).string());
    }
    std::set<std::string> expected;
    for (const auto& path : before) {
      const bool is_removed = std::any_of(removed.begin(), removed.end(), [&](const auto& gone) {
        return path == gone || path.starts_with(gone + "/");
      });
      if (options.dry_run || !is_removed) expected.insert(path);
    }
    EXPECT_EQ(paths_below(run_), expected);
    return removed;
  }

  TemporaryFolder folder_;
  fs::path run_ = folder_.path() / "run";
  std::string note_;
  int64_t bytes_ = 0;
};

TEST_F(PruneRun, RemovesCheckpointsThatNoLinkLeadsTo) {
  EXPECT_EQ(removed_by(), (std::set<std::string>{"checkpoints/step-5", "checkpoints/step-10"}));
  EXPECT_EQ(bytes_, 2 * 3020);
  EXPECT_EQ(note_, "");
  EXPECT_TRUE(fs::exists(run_ / "checkpoints/last/model.safetensors"));
  EXPECT_TRUE(removed_by().empty());
  EXPECT_EQ(bytes_, 0);
}

TEST_F(PruneRun, KeepsTheBestCheckpoint) {
  link_fake_checkpoint(run_, "best", "step-5");
  EXPECT_EQ(removed_by(), std::set<std::string>{"checkpoints/step-10"});
}

TEST_F(PruneRun, RemovesPartsAndFeatures) {
  fs::create_directories(run_ / "features");
  fs::create_directories(run_ / "checkpoints/step-20.part");
  link_fake_checkpoint(run_, "last.part", "step-15");
  for (const char* name : {"metadata.json.part", "features/a.npz", "features/b.npz.part",
                           "features/notes.txt", "checkpoints/step-20.part/model.safetensors",
                           "checkpoints/step-15/training.json.part", "curves.npz"}) {
    write_file_atomically(run_ / name, "12345");
  }
  fs::create_directories(run_ / "scores");
  write_file_atomically(run_ / "scores/msp@x.csv.part", "1");
  fs::create_directories(run_ / "trajectory");
  write_file_atomically(run_ / "trajectory/step-3.npz", "1");
  write_file_atomically(run_ / "trajectory/step-4.npz.part", "1");
  EXPECT_EQ(removed_by(),
            (std::set<std::string>{"checkpoints/step-5", "checkpoints/step-10",
                                   "checkpoints/step-20.part", "checkpoints/last.part",
                                   "checkpoints/step-15/training.json.part", "metadata.json.part",
                                   "features/a.npz", "features/b.npz.part", "scores/msp@x.csv.part",
                                   "trajectory/step-4.npz.part"}));
  EXPECT_EQ(bytes_, 2 * 3020 + 5 * 5 + 2);
}

TEST_F(PruneRun, OnlyLooksIfItIsDry) {
  EXPECT_EQ(removed_by({.dry_run = true}),
            (std::set<std::string>{"checkpoints/step-5", "checkpoints/step-10"}));
  EXPECT_EQ(bytes_, 2 * 3020);
}

TEST_F(PruneRun, RemovesTheStateOfTrainingOfFinishedRunsIfAsked) {
  EXPECT_EQ(removed_by({.training_state = true}),
            (std::set<std::string>{"checkpoints/step-5", "checkpoints/step-10",
                                   "checkpoints/step-15/training.safetensors"}));
  EXPECT_EQ(bytes_, 2 * 3020 + 2000);
}

TEST_F(PruneRun, KeepsTheStateOfTrainingOfRunsThatMayGoOn) {
  const std::set<std::string> checkpoints = {"checkpoints/step-5", "checkpoints/step-10"};
  for (const auto status : {RunStatus::running, RunStatus::stopped, RunStatus::failed}) {
    RunFolder::open(run_).set_status(status);
    EXPECT_EQ(removed_by({.dry_run = true, .training_state = true}), checkpoints)
        << name_of(status);
  }
}

TEST_F(PruneRun, LeavesARunAloneThatSomebodyIsAtWorkIn) {
  write_file_atomically(run_ / "x.part", "");
  const auto lock = RunLock::take(run_);
  for (const bool dry_run : {false, true}) {
    EXPECT_TRUE(removed_by({.dry_run = dry_run}).empty());
    EXPECT_EQ(note_, "left alone: a process is at work in it");
  }
}

TEST_F(PruneRun, LeavesCheckpointsAloneIfItIsNotClearWhichIsTheLast) {
  fs::create_directories(run_ / "checkpoints/step-20.part");
  fs::create_directories(run_ / "checkpoints/step-20");  // without weights
  write_file_atomically(run_ / "x.part", "");
  write_fake_checkpoint(folder_.path() / "elsewhere", "step-15");
  for (const char* target : {"step-99", "step-20", "last", "../../elsewhere/checkpoints/step-15"}) {
    link_fake_checkpoint(run_, "last", target);
    EXPECT_EQ(removed_by({.dry_run = true}), std::set<std::string>{"x.part"}) << target;
    EXPECT_EQ(note_, kUncertain);
  }
  fs::remove(run_ / "checkpoints/last");
  EXPECT_EQ(removed_by({.training_state = true}), std::set<std::string>{"x.part"});
  EXPECT_EQ(note_, kUncertain);
}

TEST_F(PruneRun, LeavesCheckpointsAloneIfTheBestIsLost) {
  link_fake_checkpoint(run_, "best", "step-99");
  EXPECT_TRUE(removed_by().empty());
  EXPECT_EQ(note_, kUncertain);
}

TEST_F(PruneRun, LeavesCheckpointsAloneIfTheLinkToTheBestIsMissing) {
  write_file_atomically(run_ / "checkpoints/step-15/training.json", R"({"best_accuracy":0.5})");
  EXPECT_TRUE(removed_by().empty()) << "step-5 or step-10 may be the best";
  EXPECT_EQ(note_, kUncertain);
  write_file_atomically(run_ / "checkpoints/step-15/training.json", "damaged");
  EXPECT_TRUE(removed_by().empty());
  EXPECT_EQ(note_, kUncertain);
}

TEST_F(PruneRun, LeavesCheckpointsAloneIfTheLastIsEmpty) {
  write_file_atomically(run_ / "checkpoints/step-15/model.safetensors", "");
  EXPECT_TRUE(removed_by().empty());
  EXPECT_EQ(note_, kUncertain);
}

TEST_F(PruneRun, KeepsTheCopiesThatLinksBecame) {
  link_fake_checkpoint(run_, "best", "step-5");
  for (const char* name : {"last", "best"}) {
    fs::remove(run_ / "checkpoints" / name);
    write_fake_checkpoint(run_, name);
  }
  EXPECT_EQ(removed_by(), (std::set<std::string>{"checkpoints/step-5", "checkpoints/step-10",
                                                 "checkpoints/step-15"}));
  EXPECT_TRUE(fs::exists(run_ / "checkpoints/best/model.safetensors"));
}

TEST_F(PruneRun, FollowsNoLinks) {
  const auto outside = folder_.path() / "outside";
  fs::create_directories(outside);
  write_file_atomically(outside / "a.npz", "precious");
  write_file_atomically(outside / "a.part", "precious");
  fs::create_directory_symlink(outside, run_ / "features");
  fs::create_directory_symlink(outside, run_ / "scores");
  fs::create_directory_symlink(outside, run_ / "checkpoints/step-3");
  fs::create_directory_symlink(outside, run_ / "checkpoints/step-4.part");
  fs::create_directory_symlink(outside, run_ / "checkpoints/step-5/inside");
  fs::create_symlink(outside / "a.part", run_ / "b.part");
  EXPECT_EQ(removed_by(), (std::set<std::string>{"checkpoints/step-5", "checkpoints/step-10",
                                                 "checkpoints/step-4.part"}));
  EXPECT_EQ(bytes_, 2 * 3020);
  EXPECT_EQ(paths_below(outside), (std::set<std::string>{"a.npz", "a.part"}));
}

TEST_F(PruneRun, LeavesCheckpointsAloneThatLieElsewhere) {
  fs::rename(run_ / "checkpoints", folder_.path() / "moved");
  fs::create_directory_symlink(folder_.path() / "moved", run_ / "checkpoints");
  EXPECT_TRUE(removed_by().empty());
  EXPECT_TRUE(fs::exists(folder_.path() / "moved/step-5"));
}

TEST_F(PruneRun, KnowsItsOwnNamesOnly) {
  for (const char* name : {"step-", "step-5a", "my-step-5", "step-5.bak", "mine"}) {
    write_fake_checkpoint(run_, name);
  }
  EXPECT_EQ(removed_by(), (std::set<std::string>{"checkpoints/step-5", "checkpoints/step-10"}));
}

TEST_F(PruneRun, LeavesARunBelowToItself) {
  write_fake_run(run_ / "inner", 1, 0, 90);
  write_fake_checkpoint(run_ / "inner", "step-1");
  write_fake_checkpoint(run_ / "inner", "step-2");
  link_fake_checkpoint(run_ / "inner", "last", "step-2");
  write_file_atomically(run_ / "inner/x.part", "");
  EXPECT_EQ(removed_by(), (std::set<std::string>{"checkpoints/step-5", "checkpoints/step-10"}));
}

TEST_F(PruneRun, HasNothingToDoWithoutCheckpoints) {
  fs::remove_all(run_ / "checkpoints");
  EXPECT_TRUE(removed_by().empty());
  EXPECT_EQ(note_, "");
}

TEST_F(PruneRun, RefusesWhatIsNoRun) {
  EXPECT_EQ(error_of([&] { prune_run(folder_.path()); }),
            folder_.path().string() + ": is not a run folder (no config.toml)");
}

}  // namespace kelvin::prune_test
