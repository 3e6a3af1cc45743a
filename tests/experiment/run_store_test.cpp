#include "kelvin/experiment/run_store.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kelvin/core/files.h"
#include "kelvin/core/npz_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/fake_run.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

class RunStore : public testing::Test {
 protected:
  RunStore() { write_fake_run(run_, 1, 0, 90); }

  // Why it cannot be stored in, without the path of the run.
  std::string refusal() const {
    const auto message = error_of([&] { lock_to_store(run_); });
    EXPECT_TRUE(message.starts_with(run_.string())) << message;
    EXPECT_FALSE(fs::exists(run_ / "lock"));
    return message.substr(run_.string().size());
  }

  TemporaryFolder folder_;
  fs::path run_ = folder_.path() / "run";
};

TEST_F(RunStore, AddsToWhatTheRunHolds) {
  const auto before = load_run(run_).readings.size();
  {
    const auto lock = lock_to_store(run_);
    EXPECT_TRUE(is_locked(run_));
    store_in_run(run_, {{.name = "a", .value = 1}}, {{"curve", torch::ones({2})}},
                 {{.detector = "msp", .ood = "x", .id_scores = {1}, .ood_scores = {2}}});
  }
  const auto after = load_run(run_);
  EXPECT_EQ(after.readings.size(), before + 1);
  EXPECT_EQ(after.scores.size(), 1U);
  EXPECT_TRUE(read_npz(run_ / "curves.npz").contains("curve"));
}

TEST_F(RunStore, SaysBeforehandWhatCannotBeRead) {
  constexpr auto kEnd = "; --no-store leaves the run as it is";
  write_file_atomically(run_ / "curves.npz", "damaged");
  EXPECT_TRUE(refusal().starts_with("/curves.npz: "));
  EXPECT_TRUE(refusal().ends_with(kEnd));
  fs::remove(run_ / "curves.npz");
  write_file_atomically(run_ / "scores", "a file");
  EXPECT_EQ(refusal(), std::string("/scores: is a file, must be a folder") + kEnd);
  fs::remove(run_ / "scores");
  write_file_atomically(run_ / "definitions.json", "[]");
  EXPECT_EQ(refusal(), std::string("/definitions.json: not a JSON object") + kEnd);
}

TEST_F(RunStore, SaysBeforehandThatTheRunCannotBeLocked) {
  {
    const auto lock = RunLock::take(run_);
    const auto message = error_of([&] { lock_to_store(run_); });
    EXPECT_NE(message.find("is at work in it; --no-store"), std::string::npos) << message;
  }
  fs::create_directories(run_ / "lock");
  const auto message = error_of([&] { lock_to_store(run_); });
  EXPECT_NE(message.find("cannot be made: Is a directory; --no-store"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace kelvin
