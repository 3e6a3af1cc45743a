#include <gtest/gtest.h>
#include <torch/types.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "kelvin/data/batches.h"
#include "kelvin/data/dataset.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/real_data.h"
#include "tests/support/tensors.h"

namespace kelvin::stored_test {

TEST(StoredDatasets, AreKnownWithoutTheirFiles) {
  EXPECT_EQ(dataset_facts("cifar100", {}).classes, 100);
  EXPECT_EQ(dataset_facts("cifar100-coarse", {}).classes, 20);
  EXPECT_EQ(dataset_facts("mnist", {}).shape,
            (ImageShape{.channels = 1, .height = 28, .width = 28}));
  EXPECT_EQ(dataset_facts("imagenet1k", {}).classes, 1000);
  EXPECT_EQ(dataset_facts("cifar100", {}).train_samples, 50000);
  EXPECT_EQ(dataset_facts("imagenet100", {}).shape.height, 224);
  EXPECT_EQ(dataset_facts("imagenet100", {.image_size = 64}).shape.height, 64);
}

TEST(StoredDatasets, SayWhichCommandFetchesThem) {
  const TemporaryFolder empty;
  for (const std::string name :
       {"cifar10", "cifar100", "svhn", "mnist", "fashion-mnist", "kmnist"}) {
    const auto message = error_of([&] { load_dataset(name, {.data_folder = empty.path()}); });
    EXPECT_NE(message.find("'kelvin data fetch " + name + "'"), std::string::npos) << message;
    EXPECT_NE(message.find(empty.path().string()), std::string::npos) << message;
  }
  EXPECT_TRUE(std::filesystem::is_empty(empty.path())) << "nothing downloads by itself";
}

// As published, written down here once more: the table of the library must not vouch for itself.
struct Published {
  std::string name;
  std::vector<int64_t> train_counts;
  std::vector<int64_t> test_counts;
  std::vector<double> mean;  // of the training images, to four digits
  std::vector<double> deviation;
};

std::vector<int64_t> evenly(size_t classes, int64_t count) {
  return std::vector<int64_t>(classes, count);
}

const std::vector<Published>& published() {
  static const std::vector<Published> list = {
      {"cifar10", evenly(10, 5000), evenly(10, 1000), {.4914, .4822, .4465}, {.2470, .2435, .2616}},
      {"cifar100",
       evenly(100, 500),
       evenly(100, 100),
       {.5071, .4865, .4409},
       {.2673, .2564, .2762}},
      {"cifar100-coarse",
       evenly(20, 2500),
       evenly(20, 500),
       {.5071, .4865, .4409},
       {.2673, .2564, .2762}},
      {"svhn",
       {4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659},
       {1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595},
       {.4377, .4438, .4728},
       {.1980, .2010, .1970}},
      {"mnist",
       {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949},
       {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009},
       {.1307},
       {.3081}},
      {"fashion-mnist", evenly(10, 6000), evenly(10, 1000), {.2860}, {.3530}}};
  return list;
}

std::vector<int64_t> counts_of(const Images& images, int64_t classes) {
  const auto counts = torch::bincount(images.labels, {}, classes);
  return {counts.data_ptr<int64_t>(), counts.data_ptr<int64_t>() + counts.numel()};
}

using RealDatasets = RealData;

TEST_F(RealDatasets, HaveTheirPublishedCountsAndStatistics) {
  for (const auto& expected : published()) {
    const auto dataset = load_dataset(expected.name, {.data_folder = data_folder()});
    EXPECT_EQ(counts_of(dataset.train, dataset.classes), expected.train_counts) << expected.name;
    EXPECT_EQ(counts_of(dataset.test, dataset.classes), expected.test_counts) << expected.name;
    for (size_t c = 0; c < expected.mean.size(); ++c) {
      // Exact counts of the 256 bytes, so that no summation can round.
      const auto plane = dataset.train.pixels.select(1, static_cast<int64_t>(c)).reshape({-1});
      const auto counts = torch::bincount(plane, {}, 256).to(torch::kFloat64);
      const auto values = torch::arange(256, torch::kFloat64) / 255;
      const auto total = counts.sum();
      const auto mean = (counts * values).sum() / total;
      const auto variance = (counts * (values - mean).square()).sum() / total;
      EXPECT_NEAR(mean.item<double>(), expected.mean[c], 5e-5) << expected.name;
      EXPECT_NEAR(variance.sqrt().item<double>(), expected.deviation[c], 5e-5) << expected.name;
      EXPECT_EQ(dataset.mean.at(c), expected.mean[c]) << expected.name;
      EXPECT_EQ(dataset.std_dev.at(c), expected.deviation[c]) << expected.name;
    }
  }
}

TEST_F(RealDatasets, HaveTheBytesThatNumpyAndScipyRead) {
  const auto expected = oracle(
      "import scipy.io\nfolder = bytes(x['folder']).decode()\n"
      "c10 = np.fromfile(folder + '/cifar-10-batches-bin/test_batch.bin', np.uint8)\n"
      "out['cifar10'] = c10.reshape(-1, 3073)[:, 1:].reshape(-1, 3, 32, 32)\n"
      "c100 = np.fromfile(folder + '/cifar-100-binary/test.bin', np.uint8).reshape(-1, 3074)\n"
      "out['cifar100'] = c100[:, 2:].reshape(-1, 3, 32, 32)\n"
      "out['cifar100_labels'] = c100[:, 1].astype(np.int64)\n"
      "mat = scipy.io.loadmat(folder + '/svhn/test_32x32.mat')\n"
      "out['svhn'] = np.ascontiguousarray(mat['X'].transpose(3, 2, 0, 1))\n"
      "out['svhn_labels'] = mat['y'].ravel().astype(np.int64) % 10\n"
      "idx = np.fromfile(folder + '/MNIST/raw/t10k-images-idx3-ubyte', np.uint8)[16:]\n"
      "out['mnist'] = idx.reshape(-1, 1, 28, 28)\n",
      {{"folder",
        torch::from_blob(const_cast<char*>(data_folder().c_str()),
                         {static_cast<int64_t>(data_folder().string().size())}, torch::kUInt8)
            .clone()}});
  const auto test_of = [&](const std::string& name) {
    return load_dataset(name, {.data_folder = data_folder()}).test;
  };
  EXPECT_TRUE(test_of("cifar10").pixels.equal(expected.at("cifar10")));
  EXPECT_TRUE(test_of("cifar100").pixels.equal(expected.at("cifar100")));
  EXPECT_TRUE(test_of("cifar100").labels.equal(expected.at("cifar100_labels")));
  EXPECT_TRUE(test_of("svhn").pixels.equal(expected.at("svhn")));
  EXPECT_TRUE(test_of("svhn").labels.equal(expected.at("svhn_labels")));
  EXPECT_TRUE(test_of("mnist").pixels.equal(expected.at("mnist")));
}

TEST_F(RealDatasets, AreThinnedOutEvenly) {
  const auto dataset = load_dataset("cifar100", {.train_samples = 1000,
                                                 .test_samples = 300,
                                                 .validation_samples = 5000,
                                                 .data_folder = data_folder()});
  EXPECT_EQ(counts_of(dataset.train, 100), evenly(100, 10));
  EXPECT_EQ(counts_of(dataset.validation, 100), evenly(100, 50));
  EXPECT_EQ(counts_of(dataset.test, 100), evenly(100, 3));
}

TEST_F(RealDatasets, IncludePicturesInFolders) {
  const auto dataset = load_dataset("imagefolder:" + (data_folder() / "tiny-imagenet-100").string(),
                                    {.image_size = 64});
  EXPECT_EQ(dataset.classes, 100);
  EXPECT_EQ(counts_of(dataset.train, 100), evenly(100, 30));
  EXPECT_EQ(counts_of(dataset.test, 100), evenly(100, 10));
  const auto batch = BatchMaker(dataset.mean, dataset.std_dev).make(dataset.test, {0, 999});
  EXPECT_EQ(batch.images.sizes(), (std::vector<int64_t>{2, 3, 64, 64}));
}

}  // namespace kelvin::stored_test
