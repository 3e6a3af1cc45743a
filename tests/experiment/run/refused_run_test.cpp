#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <string>
#include <vector>

#include "kelvin/experiment/run/run.h"
#include "kelvin/formats/png_file.h"
#include "kelvin/model/tensors_file.h"
#include "kelvin/runs/run_folder.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/tiny_run.h"

namespace kelvin::refused_run_test {

namespace fs = std::filesystem;

TEST(Run, ThatDivergesFailsAndSaysSo) {
  TemporaryFolder folder;
  const auto message = error_of([&] {
    run(tiny_config({"train.lr=1e30", "train.warmup_epochs=0"}), folder / "run", kNoMetadata, {});
  });
  EXPECT_TRUE(message.starts_with("train: the loss became ")) << message;
  const auto failed = load_run(folder / "run");
  EXPECT_EQ(failed.status, RunStatus::failed);
  EXPECT_EQ(failed.metrics.size(), 1U);
}

TEST(Run, WithABadSettingLeavesNoFolder) {
  TemporaryFolder folder;
  error_of([&] { run(tiny_config({"train.epochs=0"}), folder / "run", kNoMetadata, {}); });
  EXPECT_FALSE(fs::exists(folder / "run"));
}

TEST(Run, OnADatasetThatIsNotThereLeavesNoFolder) {
  TemporaryFolder folder;
  RunContext context;
  context.data_folder = folder.path();
  const auto message = error_of([&] {
    run(tiny_config({"data.name=cifar10", "model.name=mlp"}), folder / "run", kNoMetadata, context);
  });
  EXPECT_NE(message.find("'kelvin data fetch cifar10'"), std::string::npos) << message;
  EXPECT_FALSE(fs::exists(folder / "run"));
}

TEST(Run, ThatCannotTrainLeavesNoFolder) {
  TemporaryFolder folder;
  EXPECT_EQ(error_of([&] {
              run(tiny_config({"data.augment=resized-crop-flip"}), folder / "run", kNoMetadata, {});
            }),
            "data.augment: resized-crop-flip is for pictures on disk; for 'glyphs10' there is "
            "crop-flip");
  EXPECT_FALSE(fs::exists(folder / "run"));
}

TEST(Run, MeasuringAttentionThatIsNotThereLeavesNoFolder) {
  TemporaryFolder folder;
  EXPECT_EQ(error_of([&] {
              kelvin::run(tiny_config({"measure.names=[\"attention_rank\"]"}), folder / "run",
                          kNoMetadata, {});
            }),
            "measure.names: 'attention_rank' needs a model with attention, 'mlp' has none");
  EXPECT_FALSE(fs::exists(folder / "run"));
}

TEST(Run, WithWeightsOfAnotherArchitectureLeavesNoFolder) {
  TemporaryFolder folder;
  write_safetensors(folder / "w", {{"x", torch::zeros({2})}});
  const auto message = error_of([&] {
    kelvin::run(tiny_config({"init.pretrained=" + (folder / "w")}), folder / "run", kNoMetadata,
                {});
  });
  EXPECT_NE(message.find("are these weights of another architecture?"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder / "run"));
}

TEST(Run, RefusesOodDataWithoutTheTrainingImagesThatProbesNeed) {
  TemporaryFolder folder;
  fs::create_directories(folder / "photos/cat");
  write_png(folder / "photos/cat/1.png",
            {.width = 1, .height = 1, .rgb = std::vector<uint8_t>{1, 2, 3}});
  const auto name = "imagefolder:" + folder / "photos";
  const auto message = error_of([&] {
    run(tiny_config({"data.ood=[\"" + name + "\"]", "measure.names=[\"linear_probe\"]"}),
        folder / "run", kNoMetadata, {});
  });
  EXPECT_EQ(message, "dataset '" + name +
                         "' has no training images, which measure 'linear_probe' needs of OOD "
                         "data");
  EXPECT_FALSE(fs::exists(folder / "run"));
}

TEST(Run, WithoutWeightsCannotBeMeasured) {
  TemporaryFolder folder;
  RunContext context;
  context.should_stop = [] { return true; };
  run(tiny_config(), folder / "run", kNoMetadata, context);
  fs::remove_all(folder / "run/checkpoints");
  const auto message = error_of([&] { measure_run(folder / "run", {}, {}); });
  EXPECT_TRUE(message.starts_with((folder / "run") + ": has no weights yet")) << message;
}

TEST(Run, ThatIsNoneCannotBeMeasured) {
  TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { measure_run(folder.path(), {}, {}); }),
            folder.path().string() + ": is not a run folder (no config.toml)");
}

TEST(Run, WhoseLogitsAreNotFiniteLeavesNoFolder) {
  TemporaryFolder folder;
  const auto message =
      error_of([&] { run(tiny_config({"init.scale=1e30"}), folder / "run", kNoMetadata, {}); });
  EXPECT_TRUE(message.starts_with("init.scale = 1e+30: the logits before training")) << message;
  EXPECT_FALSE(fs::exists(folder / "run"));
}

}  // namespace kelvin::refused_run_test
