#include "kelvin/experiment/checkpoint.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <fstream>

#include "kelvin/model/weights.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<Model> small_model(uint64_t seed) {
  torch::manual_seed(seed);
  Settings settings("model", {{"width", 3}, {"depth", 2}});
  return models().find("mlp").build({.height = 2, .width = 2}, settings);
}

class Checkpoint : public testing::Test {
 protected:
  bool last_is(uint64_t seed) const {
    save_weights(folder_ / "expected", *small_model(seed));
    return whole_file(last_weights(run_.path())) == whole_file(folder_ / "expected");
  }

  TemporaryFolder folder_;
  RunFolder run_ = RunFolder::create(folder_ / "run", {}, {});
};

TEST_F(Checkpoint, IsWhatLastPointsAt) {
  write_checkpoint(run_, *small_model(1), 40);
  EXPECT_TRUE(last_is(1));
  EXPECT_EQ(fs::read_symlink(run_.path() / "checkpoints" / "last"), "step-40");
}

TEST_F(Checkpoint, MovesOnAndKeepsTheEarlierOne) {
  write_checkpoint(run_, *small_model(1), 40);
  write_checkpoint(run_, *small_model(2), 80);
  EXPECT_TRUE(last_is(2));
  EXPECT_TRUE(fs::exists(run_.path() / "checkpoints" / "step-40" / "model.safetensors"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(run_.path() / "checkpoints" / "last.part")));
}

TEST_F(Checkpoint, MayBeWrittenTwiceForOneStep) {
  write_checkpoint(run_, *small_model(1), 40);
  write_checkpoint(run_, *small_model(2), 40);
  EXPECT_TRUE(last_is(2));
}

TEST_F(Checkpoint, RecoversFromAnInterruptedLink) {
  fs::create_directories(run_.path() / "checkpoints");
  fs::create_directory_symlink("step-7", run_.path() / "checkpoints" / "last.part");
  write_checkpoint(run_, *small_model(1), 40);
  EXPECT_TRUE(last_is(1));
}

TEST_F(Checkpoint, StillWorksWhenTheRunIsMoved) {
  write_checkpoint(run_, *small_model(1), 40);
  fs::rename(run_.path(), folder_ / "moved");
  EXPECT_TRUE(fs::exists(last_weights(folder_ / "moved")));
}

TEST_F(Checkpoint, ThatIsMissingIsAnError) {
  const auto message = error_of([&] { last_weights(run_.path()); });
  EXPECT_TRUE(message.starts_with(run_.path().string() + ": has no weights yet")) << message;
}

TEST_F(Checkpoint, ThatCannotBeWrittenIsAnError) {
  std::ofstream(run_.path() / "checkpoints") << "a file";
  const auto message = error_of([&] { write_checkpoint(run_, *small_model(1), 1); });
  EXPECT_NE(message.find("checkpoints: cannot be made"), std::string::npos) << message;
}

}  // namespace
}  // namespace kelvin
