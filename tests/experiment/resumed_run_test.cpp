#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "kelvin/experiment/run/run.h"
#include "tests/support/errors.h"
#include "tests/support/requests.h"
#include "tests/support/same_run.h"
#include "tests/support/tiny_run.h"

namespace kelvin::resumed_run_test {

namespace fs = std::filesystem;

// The bytes of what a run leaves, but for times.
TEST(ResumedRun, EndsLikeOneThatWasNotStopped) {
  TemporaryFolder folder;
  const std::vector<std::string> changes = {"data.ood=[]", "model.dropout=0.2",
                                            "measure.steps_per_decade=2", "train.ema=0.8"};
  run(tiny_config(changes), folder / "straight", kNoMetadata, {});
  for (const int stop : {1, 3, 4, 5, 8, 9}) {
    const auto path = folder / ("stopped-" + std::to_string(stop));
    int asked = 0;
    RunContext context;
    context.should_stop = [&] { return ++asked == stop; };
    run(tiny_config(changes), path, kNoMetadata, context);
    ASSERT_EQ(load_run(path).status, RunStatus::stopped) << stop;
    resume(path, kNoMetadata, /*is_inexact=*/false, {});
    SCOPED_TRACE("stopped at " + std::to_string(stop));
    expect_same_run(path, folder / "straight");
    EXPECT_EQ(whole_file(fs::path(path) / "curves.npz"),
              whole_file(folder / "straight/curves.npz"));
  }
}

// With batch normalisations, convolutions in channels-last, and notes on a stall.
TEST(ResumedRun, EndsLikeOneThatWasNotStoppedForConvolutionsToo) {
  TemporaryFolder folder;
  Config config;
  for (const char* each :
       {"seed=1", "data.name=glyphs10", "data.train_samples=240", "data.test_samples=64",
        "model.name=resnet10", "model.width=0.125", "model.stem_stride=2", "train.batch_size=8",
        "train.temperature=1e4", "train.epochs=1", "train.precision=bf16", "train.optimizer=adam",
        "train.lr=1e-6", "measure.names=[\"accuracy\"]", "measure.epoch_samples=40",
        "measure.during=[\"layer_spectrum\", \"alignment\", \"gradient_rank\"]"}) {
    config.apply_override(each);
  }
  run(config, folder / "straight", kNoMetadata, {});
  EXPECT_NE(whole_file(folder / "straight/notes.jsonl").find("plateau"), std::string::npos);
  for (const int stop : {5, 15, 25}) {
    const auto path = folder / ("stopped-" + std::to_string(stop));
    int asked = 0;
    RunContext context;
    context.should_stop = [&] { return ++asked == stop; };
    run(config, path, kNoMetadata, context);
    resume(path, kNoMetadata, /*is_inexact=*/false, {});
    SCOPED_TRACE("stopped at " + std::to_string(stop));
    expect_same_run(path, folder / "straight");
  }
}

// With batch normalisations that see both views, a learned temperature, and gradients of views.
TEST(ResumedRun, EndsLikeOneThatWasNotStoppedOnTwoViews) {
  TemporaryFolder folder;
  Config config;
  for (const char* each :
       {"seed=1", "data.name=glyphs10", "data.train_samples=120", "data.test_samples=48",
        "data.augment=crop-flip", "model.name=resnet10", "model.width=0.125", "model.stem_stride=2",
        "train.batch_size=16", "train.epochs=2", "train.loss=info_nce", "train.loss_dimensions=16",
        "train.temperature=0.5", "train.temperature_schedule=learned", "measure.epoch_samples=40",
        "measure.gradient_samples=8", "measure.steps_per_decade=2",
        "measure.during=[\"gradient_rank\"]"}) {
    config.apply_override(each);
  }
  run(config, folder / "straight", kNoMetadata, {});
  for (const int stop : {3, 8, 11}) {
    const auto path = folder / ("stopped-" + std::to_string(stop));
    int asked = 0;
    RunContext context;
    context.should_stop = [&] { return ++asked == stop; };
    run(config, path, kNoMetadata, context);
    ASSERT_EQ(load_run(path).status, RunStatus::stopped) << stop;
    resume(path, kNoMetadata, /*is_inexact=*/false, {});
    SCOPED_TRACE("stopped at " + std::to_string(stop));
    expect_same_run(path, folder / "straight");
  }
}

// By kernels of bfloat16 where the processor has them: convolutions, linear layers, attention.
TEST(ResumedRun, EndsLikeOneThatWasNotStoppedInBfloat16) {
  const std::vector<std::vector<const char*>> networks = {
      {"model.name=resnet20"}, {"model.name=vit_tiny", "model.patch=8", "model.depth=2"}};
  for (const auto& network : networks) {
    TemporaryFolder folder;
    Config config;
    for (const char* each :
         {"data.name=glyphs10", "data.train_samples=96", "data.test_samples=32",
          "train.batch_size=16", "train.epochs=1", "train.precision=bf16", "train.lr=1e-3",
          "measure.names=[\"accuracy\"]", "measure.epoch_samples=16"}) {
      config.apply_override(each);
    }
    for (const char* each : network) config.apply_override(each);
    run(config, folder / "straight", kNoMetadata, {});
    int asked = 0;
    RunContext context;
    context.should_stop = [&] { return ++asked == 4; };
    run(config, folder / "stopped", kNoMetadata, context);
    ASSERT_EQ(load_run(folder / "stopped").status, RunStatus::stopped);
    resume(folder / "stopped", kNoMetadata, /*is_inexact=*/false, {});
    SCOPED_TRACE(network.front());
    expect_same_run(folder / "stopped", folder / "straight");
  }
}

TEST(ResumedRun, ForgetsWhatWasMeasuredInBetween) {
  TemporaryFolder folder;
  const std::vector<std::string> changes = {"data.ood=[]", "train.temperature_schedule=linear",
                                            "train.temperature_end=9"};
  run(tiny_config(changes), folder / "straight", kNoMetadata, {});
  int asked = 0;
  RunContext context;
  context.should_stop = [&] { return ++asked == 3; };
  run(tiny_config(changes), folder / "run", kNoMetadata, context);
  EXPECT_FALSE(measure_run(folder / "run", request_for({"accuracy"}), {}).empty());
  resume(folder / "run", kNoMetadata, /*is_inexact=*/false, {});
  expect_same_run(folder / "run", folder / "straight");
}

// Killed after looks that its last checkpoint does not know of.
TEST(ResumedRun, ForgetsLooksThatItsCheckpointDoesNotKnowOf) {
  TemporaryFolder folder;
  Config config;
  for (const char* each :
       {"data.name=glyphs10", "data.train_samples=64", "data.test_samples=32",
        "model.name=resnet10", "model.width=0.125", "model.stem_stride=2", "train.batch_size=8",
        "train.epochs=1", "measure.names=[\"accuracy\"]", "measure.epoch_samples=16",
        "measure.steps_per_decade=2", "measure.during=[\"alignment\"]"}) {
    config.apply_override(each);
  }
  run(config, folder / "straight", kNoMetadata, {});
  const auto looks = kept_snapshots(folder / "straight");
  ASSERT_EQ(looks.size(), 4U);  // at the beginning, after steps 1 and 3, and at the end
  ASSERT_TRUE(looks.contains("step-8.npz"));
  int asked = 0;
  RunContext context;
  context.should_stop = [&] { return ++asked == 5; };
  run(config, folder / "killed", kNoMetadata, context);
  EXPECT_EQ(kept_snapshots(folder / "killed").size() + 1, looks.size());
  for (const char* name : {"step-8.npz", "step-7.npz", "step-7.npz.part"}) {
    write_file_atomically(fs::path(folder / "killed/trajectory") / name, "of another training");
  }
  fs::copy_file(folder / "straight/trajectory.jsonl", folder / "killed/trajectory.jsonl",
                fs::copy_options::overwrite_existing);
  RunFolder::open(folder / "killed").set_status(RunStatus::running);
  resume(folder / "killed", kNoMetadata, /*is_inexact=*/false, {});
  expect_same_run(folder / "killed", folder / "straight");
}

TEST(ResumedRun, StartsAnewWithoutACheckpoint) {
  TemporaryFolder folder;
  run(tiny_config({"data.ood=[]"}), folder / "straight", kNoMetadata, {});
  fs::copy(folder / "straight", folder / "killed", fs::copy_options::recursive);
  fs::remove_all(folder / "killed/checkpoints");
  RunFolder::open(folder / "killed").set_status(RunStatus::running);
  resume(folder / "killed", kNoMetadata, /*is_inexact=*/false, {});
  expect_same_run(folder / "killed", folder / "straight");
}

TEST(ResumedRun, TellsWhoWentOn) {
  TemporaryFolder folder;
  int asked = 0;
  RunContext context;
  context.should_stop = [&] { return ++asked == 3; };
  run(tiny_config({"data.ood=[]"}), folder / "run", {{"command", "first"}}, context);
  resume(folder / "run", {{"command", "second"}}, /*is_inexact=*/true, {});
  const auto metadata = load_run(folder / "run").metadata;
  EXPECT_EQ(metadata.at("command"), "first");
  ASSERT_EQ(metadata.at("resumed").size(), 1U);
  EXPECT_EQ(metadata.at("resumed")[0].at("command"), "second");
  EXPECT_EQ(metadata.at("resumed")[0].at("step"), 3);
}

TEST(ResumedRun, MustHaveTheDataItHad) {
  TemporaryFolder folder;
  RunContext context;
  context.should_stop = [] { return true; };
  run(tiny_config({"data.ood=[]"}), folder / "run", kNoMetadata, context);
  const auto path = folder / "run/metadata.json";
  auto metadata = nlohmann::ordered_json::parse(whole_file(path));
  metadata.at("data_md5").at("train") = "other";
  write_file_atomically(path, metadata.dump());
  const auto message =
      error_of([&] { resume(folder / "run", kNoMetadata, /*is_inexact=*/true, {}); });
  EXPECT_NE(message.find("dataset 'glyphs10' is not the one it was trained on"), std::string::npos)
      << message;
}

TEST(ResumedRun, MustNotRoundDifferently) {
  TemporaryFolder folder;
  RunContext context;
  context.should_stop = [] { return true; };
  run(tiny_config({"data.ood=[]"}), folder / "run", {{"versions", {{"threads", 4}}}}, context);
  const auto before = whole_file(folder / "run/metadata.json");
  const nlohmann::ordered_json now = {{"versions", {{"threads", 2}}}};
  EXPECT_EQ(error_of([&] { resume(folder / "run", now, /*is_inexact=*/false, {}); }),
            (folder / "run") +
                ": would not go on to the same bits: threads 2 instead of 4; "
                "--inexact does it nevertheless");
  EXPECT_EQ(whole_file(folder / "run/metadata.json"), before);
  EXPECT_EQ(load_run(folder / "run").status, RunStatus::stopped);
}

}  // namespace kelvin::resumed_run_test
