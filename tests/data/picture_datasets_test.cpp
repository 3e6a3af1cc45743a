#include "kelvin/data/picture_datasets.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "kelvin/data/batches.h"
#include "kelvin/formats/png_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::picture_datasets_test {

namespace fs = std::filesystem;

void write_plain(const fs::path& path, uint8_t colour) {
  fs::create_directories(path.parent_path());
  write_png(path, {.width = 12,
                   .height = 10,
                   .rgb = std::vector<uint8_t>(static_cast<size_t>(12 * 10 * 3), colour)});
}

std::string photo(const std::string& split, const std::string& kind, const std::string& name) {
  return "photos/" + split + "/" + kind + "/" + name;
}

class PictureDatasets : public testing::Test {
 protected:
  PictureDatasets() {
    for (const std::string split : {"train", "val"}) {
      for (int i = 0; i < (split == "train" ? 4 : 2); ++i) {
        const auto name = std::to_string(i) + ".png";
        write_plain(folder_ / photo(split, "cat", name), static_cast<uint8_t>(10 + i));
        write_plain(folder_ / photo(split, "dog", name), static_cast<uint8_t>(200 + i));
      }
    }
  }

  std::string name() const { return "imagefolder:" + (folder_ / "photos"); }

  TemporaryFolder folder_;
};

TEST_F(PictureDatasets, HaveTheSplitsAndClassesOfTheirFolders) {
  const auto dataset = load_dataset(name(), {.image_size = 8});
  EXPECT_EQ(dataset.name, name());
  EXPECT_EQ(dataset.class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(dataset.classes, 2);
  EXPECT_EQ(dataset.train.size(), 8);
  EXPECT_EQ(dataset.test.size(), 4);
  EXPECT_EQ(dataset.train.shape(), (ImageShape{.channels = 3, .height = 8, .width = 8}));
  EXPECT_TRUE(dataset.train.files) << "nothing is decoded before it is asked for";
  const auto facts = dataset_facts(name(), {.image_size = 8});
  EXPECT_EQ(facts.classes, 2);
  EXPECT_EQ(facts.shape, dataset.train.shape());
  EXPECT_EQ(dataset_facts(name(), {}).shape.height, 224);
}

TEST_F(PictureDatasets, GiveBatchesLikeOthers) {
  const auto dataset = load_dataset(name(), {.image_size = 8});
  const BatchMaker batches({0, 0, 0}, {1, 1, 1});
  const auto batch = batches.make(dataset.train, {0, 5});
  EXPECT_EQ(batch.images.sizes(), (std::vector<int64_t>{2, 3, 8, 8}));
  expect_close(batch.images[0], torch::full({3, 8, 8}, 10 / 255.0), 1e-6);
  expect_close(batch.images[1], torch::full({3, 8, 8}, 201 / 255.0), 1e-6);
  EXPECT_TRUE(batch.labels.equal(labels_of({0, 1})));
  const BatchMaker random({0, 0, 0}, {1, 1, 1}, {.augmentation = Augmentation::resized_crop_flip});
  expect_close(random.make(dataset.train, {5}).images[0], torch::full({3, 8, 8}, 201 / 255.0),
               1e-6);
}

TEST_F(PictureDatasets, AreKeptInMemoryOnRequest) {
  const auto dataset = load_dataset(name(), {.image_size = 8, .cache_images = true});
  EXPECT_FALSE(dataset.train.files);
  EXPECT_EQ(dataset.train.pixels.sizes(), (std::vector<int64_t>{8, 3, 8, 8}));
  EXPECT_EQ(dataset.train.pixels[5][0][0][0].item<int64_t>(), 201);
}

TEST_F(PictureDatasets, LieInTheDataFolderIfNotHere) {
  const auto dataset =
      load_dataset("imagefolder:photos", {.data_folder = folder_.path(), .image_size = 8});
  EXPECT_EQ(dataset.train.size(), 8);
}

TEST_F(PictureDatasets, AreATestSplitWithoutATrainFolder) {
  const auto dataset = load_dataset(name() + "/val", {.image_size = 8});
  EXPECT_EQ(dataset.train.size(), 0);
  EXPECT_EQ(dataset.test.size(), 4);
}

TEST_F(PictureDatasets, CanBeThinnedOut) {
  const auto dataset =
      load_dataset(name(), {.train_samples = 2, .validation_samples = 2, .image_size = 8});
  EXPECT_TRUE(dataset.train.labels.equal(labels_of({0, 1})));
  EXPECT_EQ(dataset.validation.size(), 2);
  EXPECT_EQ(dataset.validation.files->size(), 2);
}

TEST_F(PictureDatasets, ComeFromImageListsToo) {
  write_file_atomically(folder_ / "train.txt", "train/cat/0.png 0\ntrain/dog/1.png 1\n");
  write_file_atomically(folder_ / "test.txt", "val/dog/0.png 1\n");
  const auto dataset =
      load_dataset("imagelist:" + (folder_ / "train.txt") + "," + (folder_ / "test.txt"),
                   {.image_root = folder_.path() / "photos", .image_size = 8});
  EXPECT_EQ(dataset.classes, 2);
  EXPECT_TRUE(dataset.train.labels.equal(labels_of({0, 1})));
  EXPECT_TRUE(dataset.test.labels.equal(labels_of({1})));
  const auto batch = BatchMaker({0, 0, 0}, {1, 1, 1}).make(dataset.test, {0});
  expect_close(batch.images[0], torch::full({3, 8, 8}, 200 / 255.0), 1e-6);
}

TEST_F(PictureDatasets, ComeFromOneListAsATestSplit) {
  write_file_atomically(folder_ / "photos/OOD.txt", "val/dog/0.png -1\nval/dog/1.png -1\n");
  const auto dataset = load_dataset("imagelist:" + (folder_ / "photos/OOD.txt"), {.image_size = 8});
  EXPECT_EQ(dataset.train.size(), 0);
  EXPECT_EQ(dataset.test.size(), 2);
  EXPECT_EQ(dataset.class_names, (std::vector<std::string>{"unlabelled"}));
}

TEST_F(PictureDatasets, RejectPathsThatLeadNowhere) {
  EXPECT_EQ(error_of([] { load_dataset("imagefolder", {}); }),
            "imagefolder: needs a path, as in imagefolder:photos");
  EXPECT_EQ(error_of([] { load_dataset("imagefolder:/nowhere", {}); }),
            "imagefolder:/nowhere: no such folder");
  fs::remove_all(folder_ / "photos/val/dog");
  EXPECT_EQ(error_of([&] { load_dataset(name(), {}); }),
            (folder_ / "photos/val") + ": must have the 2 classes of " +
                (folder_ / "photos/train") + ", has 1 that are not all the same");
  fs::remove_all(folder_ / "photos/val");
  EXPECT_EQ(error_of([&] { load_dataset(name(), {}); }),
            (folder_ / "photos") + ": holds train but neither val nor test");
  EXPECT_EQ(error_of([] { load_dataset("imagelist:a,b,c", {}); }),
            "imagelist: needs one list, or one for training and one for testing, as in "
            "imagelist:train.txt,test.txt");
}

}  // namespace kelvin::picture_datasets_test
