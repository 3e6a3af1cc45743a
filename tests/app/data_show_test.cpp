#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kelvin/formats/image_file.h"
#include "kelvin/formats/png_file.h"
#include "tests/support/command.h"
#include "tests/support/real_data.h"

namespace kelvin::data_show_test {

namespace fs = std::filesystem;

PictureSize size_of(const fs::path& path) {
  const auto bytes = whole_file(path);
  return picture_size({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "mosaic");
}

void write_pets(const fs::path& folder) {
  for (const char* path :
       {"train/cat/1.png", "train/dog/1.png", "val/cat/1.png", "val/dog/1.png"}) {
    fs::create_directories((folder / path).parent_path());
    write_png(folder / path, {.width = 10,
                              .height = 8,
                              .rgb = std::vector<uint8_t>(static_cast<size_t>(10 * 8 * 3), 100)});
  }
}

TEST(DataShow, DrawsAMosaicOfAnyDataset) {
  const TemporaryFolder folder;
  const auto result = run_tool({"data", "show", "glyphs10", "--output", folder / "mosaic.png",
                                "--count", "20", "--columns", "5"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, (folder / "mosaic.png") + ": 20 train images of glyphs10\n");
  const auto size = size_of(folder / "mosaic.png");
  EXPECT_GT(size.width, 5 * 64);
  EXPECT_GT(size.height, 4 * 64);
}

TEST(DataShow, FindsPicturesInTheDataFolder) {
  const TemporaryFolder folder;
  write_pets(folder / "pets");
  const auto result =
      run_tool({"data", "show", "imagefolder:pets", "--data-dir", folder.path().string(), "--split",
                "test", "--output", folder / "mosaic.png", "data.image_size=32"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find(": 2 test images of imagefolder:pets"), std::string::npos)
      << result.out;
}

TEST(DataShow, AnswersBadUsageWithOneLineAndCode2) {
  const TemporaryFolder folder;
  const auto output = folder / "mosaic.png";
  struct BadShow {
    std::vector<std::string> arguments;
    std::string expected;
  };
  const std::vector<BadShow> cases = {
      {{"cifar10", "--output", output, "--data-dir", folder.path().string()},
       "'kelvin data fetch cifar10'"},
      {{"glyphs11", "--output", output}, "did you mean 'glyphs10'?"},
      {{"glyphs10", "--output", output, "--count", "0"}, "--count: must be from 1 to"},
      {{"glyphs10", "--output", output, "--split", "dev"}, "--split: must be train or test"},
      {{"glyphs10", "--output", folder / "no/where.png", "--count", "1"}, "there is no folder "},
      {{"glyphs10", "--output", output, "data.name=glyphs100"}, "data.name: is 'glyphs10' already"},
      {{"glyphs10:x", "--output", output}, "take a path after a colon"},
      {{"imagefolder:bad\xff", "--output", output}, "data.name: must be UTF-8"},
      {{"glyphs10"}, "--output is required"}};
  for (const auto& bad : cases) {
    std::vector<std::string> words = {"data", "show"};
    words.insert(words.end(), bad.arguments.begin(), bad.arguments.end());
    const auto result = run_tool(words);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(bad.expected), std::string::npos) << result.err;
    EXPECT_FALSE(fs::exists(output));
  }
}

TEST(TrainVerb, KeepsPathsOfPicturesAbsolute) {
  const TemporaryFolder folder;
  write_pets(folder / "pets");
  const auto result = run_tool({"train", "--dataset", "imagefolder:pets", "--model", "mlp",
                                "--image-size", "8", "--data-dir", folder.path().string(),
                                "--dry-run", "-o", "json", "model.width=8", "model.depth=2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto config = nlohmann::json::parse(result.out).at("config");
  EXPECT_EQ(config.at("data.name"), "imagefolder:" + (folder / "pets"));
}

using RealDataTool = RealData;

TEST_F(RealDataTool, VerifiesEverythingThatIsThere) {
  const auto result = run_tool({"data", "verify", "-q", "-o", "json"});
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
  std::map<std::string, std::string> verdicts;
  for (const auto& report : nlohmann::json::parse(result.out)) {
    verdicts[report.at("name")] = report.at("verdict");
  }
  for (const char* name : {"cifar10", "cifar100", "cifar100-coarse", "mnist", "fashion-mnist"}) {
    EXPECT_EQ(verdicts[name], "official") << name;
  }
  EXPECT_TRUE(verdicts["svhn"] == "official" || verdicts["svhn"] == "equal content")
      << verdicts["svhn"];
  EXPECT_EQ(verdicts["imagefolder:tiny-imagenet-100"], "readable");
}

TEST_F(RealDataTool, ShowsEverythingThatIsThere) {
  const TemporaryFolder folder;
  for (const std::string name : {"cifar10", "cifar100", "cifar100-coarse", "svhn", "mnist",
                                 "fashion-mnist", "imagefolder:tiny-imagenet-100"}) {
    const auto result =
        run_tool({"data", "show", name, "--split", "test", "--output", folder / "mosaic.png"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, (folder / "mosaic.png") + ": 100 test images of " + name + "\n");
  }
}

TEST_F(RealDataTool, PlansRunsOnLargePicturesWithinReason) {
  const auto result = run_tool({"train", "--dataset", "imagefolder:tiny-imagenet-100", "--model",
                                "resnet10", "--dry-run", "model.width=0.25"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(result.seconds, 30);
}

// A network on CIFAR, shown digits: other size, other channels.
TEST_F(RealDataTool, TrainsOnRealImagesAndMeasuresOnOodOnes) {
  const TemporaryFolder folder;
  const auto result = run_tool({"train",
                                "--dataset",
                                "cifar10",
                                "--ood",
                                "mnist",
                                "--augment",
                                "crop-flip",
                                "--model",
                                "mlp",
                                "--train-samples",
                                "500",
                                "--test-samples",
                                "200",
                                "--epochs",
                                "1",
                                "--quiet",
                                "--output",
                                folder / "run",
                                "model.width=16",
                                "model.depth=2",
                                "measure.epoch_samples=100"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::exists(folder / "run/scores/neco@mnist.csv"));
  const auto measured = run_tool({"measure", folder / "run", "-q", "--measures", "accuracy"});
  EXPECT_EQ(measured.exit_code, 0) << measured.err;
}

}  // namespace kelvin::data_show_test
