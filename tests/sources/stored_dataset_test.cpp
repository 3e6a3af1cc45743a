#include "kelvin/sources/stored_dataset.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/mats.h"
#include "tests/support/pickles.h"

namespace kelvin::stored_dataset_test {

namespace fs = std::filesystem;

// A known dataset, but with no sizes and counts, so that a few images will do.
KnownDataset small(const std::string& name) {
  auto dataset = known_dataset(name);
  dataset.train_counts = {};
  dataset.test_counts = {};
  for (auto& layout : dataset.layouts) {
    for (auto& file : layout.train_files) file.bytes = 0;
    for (auto& file : layout.test_files) file.bytes = 0;
  }
  return dataset;
}

std::string cifar_record(const std::string& labels, char pixel) {
  return labels + std::string(3072, pixel);
}

std::string big_endian(const std::vector<uint32_t>& numbers) {
  std::string bytes;
  for (const auto number : numbers) {
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>((number >> shift) & 0xff);
  }
  return bytes;
}

class StoredDataset : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& bytes) const {
    const auto full = folder_.path() / path;
    fs::create_directories(full.parent_path());
    std::ofstream(full, std::ios::binary) << bytes;
  }

  RawImages read(const KnownDataset& dataset, StoredSplit split) const {
    return read_stored(dataset, folder_.path(), split);
  }

  // Without the name of the temporary folder.
  template <class Action>
  std::string refusal_of(const Action& action) const {
    auto message = error_of(action);
    const auto name = folder_.path().string();
    for (auto at = message.find(name); at != std::string::npos; at = message.find(name)) {
      message.replace(at, name.size(), "DATA");
    }
    return message;
  }

  std::string refusal_of_reading(const KnownDataset& dataset, StoredSplit split) const {
    return refusal_of([&] { read(dataset, split); });
  }

  void write_cifar10() const {
    for (char i = 1; i <= 5; ++i) {
      write("cifar-10-batches-bin/data_batch_" + std::to_string(i) + ".bin",
            cifar_record(std::string(1, i), static_cast<char>('a' + i)));
    }
    write("cifar-10-batches-bin/test_batch.bin", cifar_record("\x09", 'z'));
  }

  void write_mnist(const std::string& ending) const {
    const auto pixels = std::string(784, 'p') + std::string(784, 'q');
    write("MNIST/raw/train-images-idx3-ubyte" + ending, big_endian({0x803, 2, 28, 28}) + pixels);
    write("MNIST/raw/train-labels-idx1-ubyte" + ending, big_endian({0x801, 2}) + "\x03\x04");
  }

  TemporaryFolder folder_;
};

TEST_F(StoredDataset, NamesTheFoldersLookedForAndTheCommandThatFetches) {
  EXPECT_EQ(find_layout(known_dataset("cifar10"), folder_.path()), nullptr);
  EXPECT_EQ(refusal_of([&] { require_layout(known_dataset("cifar10"), folder_.path()); }),
            "cifar10: not found in DATA (looked for cifar-10-batches-bin, cifar-10-batches-py); "
            "'kelvin data fetch cifar10' gets it");
}

TEST_F(StoredDataset, SaysHowToGetWhatCannotBeFetched) {
  const auto message =
      refusal_of([&] { require_layout(known_dataset("imagenet1k"), folder_.path()); });
  EXPECT_EQ(message, "imagenet1k: not found in DATA (looked for imagenet1k, imagenet); " +
                         known_dataset("imagenet1k").how_to_get);
}

TEST_F(StoredDataset, PrefersTheFirstLayoutThatIsThere) {
  const auto dataset = known_dataset("cifar10");
  fs::create_directories(folder_.path() / "cifar-10-batches-py");
  EXPECT_EQ(require_layout(dataset, folder_.path()).format, StoredFormat::cifar_pickle);
  fs::create_directories(folder_.path() / "cifar-10-batches-bin");
  EXPECT_EQ(require_layout(dataset, folder_.path()).format, StoredFormat::cifar_binary);
}

TEST_F(StoredDataset, JoinsTheTrainingFilesInTheirOrder) {
  write_cifar10();
  const auto train = read(small("cifar10"), StoredSplit::train);
  EXPECT_EQ(train.labels, (std::vector<int64_t>{1, 2, 3, 4, 5}));
  ASSERT_EQ(train.pixels.size(), 5U * 3072);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(train.pixels.at(i * 3072), 'b' + i);
  const auto test = read(small("cifar10"), StoredSplit::test);
  EXPECT_EQ(test.labels, std::vector<int64_t>{9});
  EXPECT_EQ(test.pixels, std::vector<uint8_t>(3072, 'z'));
}

TEST_F(StoredDataset, RejectsAFileOfAnotherSizeThanPublished) {
  write_cifar10();
  EXPECT_EQ(refusal_of_reading(known_dataset("cifar10"), StoredSplit::test),
            "DATA/cifar-10-batches-bin/test_batch.bin: must have 30730000 bytes, has 3073");
}

TEST_F(StoredDataset, NamesAFileThatIsMissing) {
  write_cifar10();
  fs::remove(folder_.path() / "cifar-10-batches-bin/data_batch_4.bin");
  EXPECT_EQ(refusal_of_reading(small("cifar10"), StoredSplit::train),
            "DATA/cifar-10-batches-bin/data_batch_4.bin: is missing; 'kelvin data fetch cifar10' "
            "gets it");
}

TEST_F(StoredDataset, NamesFileAndOffsetOfADamagedOne) {
  write_cifar10();
  write("cifar-10-batches-bin/data_batch_3.bin", cifar_record("\x0a", 'x'));
  EXPECT_EQ(refusal_of_reading(small("cifar10"), StoredSplit::train),
            "DATA/cifar-10-batches-bin/data_batch_3.bin: byte 0: label must be below 10, is 10");
}

TEST_F(StoredDataset, RejectsAFileTooLargeForItsPublishedImages) {
  write_cifar10();
  fs::resize_file(folder_.path() / "cifar-10-batches-bin/test_batch.bin", 1ULL << 40);
  EXPECT_EQ(refusal_of_reading(small("cifar10"), StoredSplit::test),
            "DATA/cifar-10-batches-bin/test_batch.bin: must have at most 1073741824 bytes, has "
            "1099511627776");
}

TEST_F(StoredDataset, ReadsFineAndCoarseLabelsOfTheSameFile) {
  write("cifar-100-binary/train.bin", cifar_record("\x13\x63", 'x'));
  EXPECT_EQ(read(small("cifar100"), StoredSplit::train).labels, std::vector<int64_t>{99});
  EXPECT_EQ(read(small("cifar100-coarse"), StoredSplit::train).labels, std::vector<int64_t>{19});
}

TEST_F(StoredDataset, ReadsPickles) {
  for (int i = 1; i <= 5; ++i) {
    write("cifar-10-batches-py/data_batch_" + std::to_string(i), python2_cifar_pickle());
  }
  const auto train = read(small("cifar10"), StoredSplit::train);
  EXPECT_EQ(train.labels, (std::vector<int64_t>{6, 9, 6, 9, 6, 9, 6, 9, 6, 9}));
  EXPECT_EQ(train.pixels.size(), 10U * 3072);
}

TEST_F(StoredDataset, CountsTheImagesOfFilesWithoutAPublishedSize) {
  write("cifar-10-batches-py/test_batch", python2_cifar_pickle());
  auto dataset = known_dataset("cifar10");
  EXPECT_EQ(refusal_of_reading(dataset, StoredSplit::test),
            "DATA/cifar-10-batches-py: the test split must have 10000 images, has 2");
  dataset.test_counts = {0, 0, 0, 0, 0, 0, 1, 0, 0, 1};
  EXPECT_EQ(read(dataset, StoredSplit::test).size(), 2);
}

TEST_F(StoredDataset, ReadsSvhn) {
  write("svhn/test_32x32.mat",
        scipy_mats({"dict(X=np.full((32, 32, 3, 2), 7, 'u1'), y=np.array([[10], [4]], 'u1')),"
                    " do_compression=True"})
            .at(0));
  const auto test = read(small("svhn"), StoredSplit::test);
  EXPECT_EQ(test.labels, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(test.pixels, std::vector<uint8_t>(6144, 7));
  EXPECT_EQ(refusal_of_reading(known_dataset("svhn"), StoredSplit::test),
            "DATA/svhn: the test split must have 26032 images, has 2");
}

TEST_F(StoredDataset, ReadsIdxFiles) {
  write_mnist("");
  const auto train = read(small("mnist"), StoredSplit::train);
  EXPECT_EQ(train.labels, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(train.channels, 1);
  EXPECT_EQ(train.height, 28);
  EXPECT_EQ(train.pixels.at(783), 'p');
  EXPECT_EQ(train.pixels.at(784), 'q');
}

TEST_F(StoredDataset, ReadsIdxFilesThatAreStillPacked) {
  write_mnist("");
  const auto expected = read(small("mnist"), StoredSplit::train);
  ASSERT_EQ(std::system(("gzip " + (folder_ / "MNIST/raw/*")).c_str()), 0);
  ASSERT_FALSE(fs::exists(folder_.path() / "MNIST/raw/train-images-idx3-ubyte"));
  const auto packed = read(small("mnist"), StoredSplit::train);
  EXPECT_EQ(packed.pixels, expected.pixels);
  EXPECT_EQ(packed.labels, expected.labels);
}

TEST_F(StoredDataset, HoldsPackedFilesToTheirPublishedSize) {
  write_mnist(".gz");  // not packed, whatever the name says
  EXPECT_EQ(refusal_of_reading(known_dataset("mnist"), StoredSplit::train),
            "DATA/MNIST/raw/train-images-idx3-ubyte.gz: must have 47040016 bytes, has 1584");
  auto dataset = small("mnist");
  dataset.layouts.at(0).train_files.at(0).bytes = 100;
  EXPECT_EQ(refusal_of_reading(dataset, StoredSplit::train),
            "DATA/MNIST/raw/train-images-idx3-ubyte.gz: must hold at most 100 bytes, has 1584");
}

TEST_F(StoredDataset, NamesAnIdxFileThatIsMissing) {
  write_mnist("");
  EXPECT_EQ(refusal_of_reading(small("mnist"), StoredSplit::test),
            "DATA/MNIST/raw/t10k-images-idx3-ubyte: is missing; 'kelvin data fetch mnist' gets it");
}

TEST_F(StoredDataset, RejectsLabelsThatAreNotAsManyAsImages) {
  write_mnist("");
  write("MNIST/raw/train-labels-idx1-ubyte", big_endian({0x801, 3}) + "\x03\x04\x05");
  EXPECT_EQ(refusal_of_reading(small("mnist"), StoredSplit::train),
            "DATA/MNIST/raw/train-labels-idx1-ubyte: must have as many labels as there are images, "
            "2, has 3");
}

TEST_F(StoredDataset, RejectsImagesOfAnotherShape) {
  write_mnist("");
  write("MNIST/raw/train-images-idx3-ubyte",
        big_endian({0x803, 2, 14, 56}) + std::string(1568, 'x'));
  EXPECT_EQ(refusal_of_reading(small("mnist"), StoredSplit::train),
            "DATA/MNIST/raw/train-images-idx3-ubyte: images must be 1 x 28 x 28, are 1 x 14 x 56");
}

TEST_F(StoredDataset, ListsTheFilesOfImageFoldersInTheOrderOfTheClasses) {
  auto dataset = known_dataset("imagenet1k");
  dataset.class_names = {"n02", "n01"};
  for (const std::string name : {"train/n01/a.JPEG", "train/n02/b.JPEG", "train/n03/c.JPEG",
                                 "val/n01/d.JPEG", "val/n02/e.JPEG"}) {
    write("imagenet/" + name, "");
  }
  const auto train = list_stored(dataset, folder_.path(), StoredSplit::train);
  ASSERT_EQ(train.size(), 2);
  EXPECT_EQ(train.paths.at(0), folder_.path() / "imagenet/train/n02/b.JPEG");
  EXPECT_EQ(train.labels, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(train.class_names, dataset.class_names);
  const auto test = list_stored(dataset, folder_.path(), StoredSplit::test);
  EXPECT_EQ(test.paths.at(1), folder_.path() / "imagenet/val/n01/d.JPEG");
}

TEST_F(StoredDataset, TakesAFolderCalledTestWhereThereIsNoVal) {
  auto dataset = known_dataset("imagenet100");
  dataset.class_names = {"n01"};
  write("imagenet100/test/n01/a.jpeg", "");
  EXPECT_EQ(list_stored(dataset, folder_.path(), StoredSplit::test).size(), 1);
  write("imagenet100/val/n01/b.jpeg", "");
  EXPECT_EQ(list_stored(dataset, folder_.path(), StoredSplit::test).paths.at(0),
            folder_.path() / "imagenet100/val/n01/b.jpeg");
}

TEST_F(StoredDataset, DoesNotMixUpFilesOfImagesAndWholeSplits) {
  fs::create_directories(folder_.path() / "imagenet1k");
  fs::create_directories(folder_.path() / "svhn");
  EXPECT_EQ(refusal_of_reading(known_dataset("imagenet1k"), StoredSplit::train),
            "imagenet1k: lies in DATA/imagenet1k as files of images, must be read one by one");
  EXPECT_EQ(
      refusal_of([&] { list_stored(known_dataset("svhn"), folder_.path(), StoredSplit::train); }),
      "svhn: lies in DATA/svhn as whole splits, has no files of images");
}

}  // namespace kelvin::stored_dataset_test
