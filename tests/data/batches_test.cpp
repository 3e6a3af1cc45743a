#include "kelvin/data/batches.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

using Indices = std::vector<int64_t>;

constexpr std::array<double, 3> kZeros = {0, 0, 0};
constexpr std::array<double, 3> kOnes = {1, 1, 1};

Images random_images(int64_t samples, int64_t channels = 3) {
  torch::manual_seed(1);
  return {.pixels = torch::randint(256, {samples, channels, 5, 7}, torch::kUInt8),
          .labels = torch::randint(10, {samples}, torch::kInt64)};
}

TEST(EpochOrder, IsAPermutation) {
  for (const int64_t samples : {1, 2, 3, 100, 1001}) {
    auto order = epoch_order(7, 3, samples);
    std::sort(order.begin(), order.end());
    Indices expected(static_cast<size_t>(samples));
    std::iota(expected.begin(), expected.end(), int64_t{0});
    EXPECT_EQ(order, expected);
  }
}

TEST(EpochOrder, IsEmptyWithoutSamples) { EXPECT_TRUE(epoch_order(7, 3, 0).empty()); }

TEST(EpochOrder, DependsOnSeedAndEpochOnly) {
  const auto first = epoch_order(7, 3, 500);
  torch::manual_seed(99);
  epoch_order(8, 4, 20);
  EXPECT_EQ(epoch_order(7, 3, 500), first);
  EXPECT_NE(epoch_order(7, 4, 500), first);
  EXPECT_NE(epoch_order(8, 3, 500), first);
}

TEST(EpochOrder, PutsEverySampleFirstEquallyOften) {
  constexpr int64_t kSamples = 10;
  constexpr int kEpochs = 4000;
  std::vector<int> counts(kSamples);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    ++counts[static_cast<size_t>(epoch_order(1, epoch, kSamples).front())];
  }
  // 400 expected each; five standard deviations are 95.
  for (const int count : counts) EXPECT_NEAR(count, kEpochs / kSamples, 95);
}

TEST(FixedSample, IsDistinctAscendingAndInRange) {
  const auto sample = fixed_sample(5, 100, 1000);
  ASSERT_EQ(sample.size(), 100U);
  EXPECT_TRUE(std::is_sorted(sample.begin(), sample.end()));
  EXPECT_EQ(std::set<int64_t>(sample.begin(), sample.end()).size(), 100U);
  EXPECT_GE(sample.front(), 0);
  EXPECT_LT(sample.back(), 1000);
}

TEST(FixedSample, DependsOnTheSeed) {
  EXPECT_EQ(fixed_sample(5, 10, 1000), fixed_sample(5, 10, 1000));
  EXPECT_NE(fixed_sample(5, 10, 1000), fixed_sample(6, 10, 1000));
}

TEST(FixedSample, IsAllOfThemIfThereAreFewer) {
  EXPECT_EQ(fixed_sample(5, 10, 3), (Indices{0, 1, 2}));
  EXPECT_EQ(fixed_sample(5, 3, 3), (Indices{0, 1, 2}));
}

TEST(BatchMaker, SubtractsTheMeanAndDividesByTheDeviation) {
  const auto images = random_images(4);
  const std::array<double, 3> mean = {0.25, 0.5, 0.75};
  const std::array<double, 3> deviation = {0.1, 0.2, 2};
  const auto batch = BatchMaker(mean, deviation).make(images, {0, 1, 2, 3});
  const auto pixels = images.pixels.to(torch::kFloat64) / 255;
  for (int64_t channel = 0; channel < 3; ++channel) {
    const auto c = static_cast<size_t>(channel);
    const auto expected = (pixels.select(1, channel) - mean.at(c)) / deviation.at(c);
    const auto difference = batch.images.select(1, channel).to(torch::kFloat64) - expected;
    EXPECT_LT(difference.abs().max().item<double>(), 5e-6) << "channel " << channel;
  }
}

TEST(BatchMaker, GathersTheChosenImagesInOrder) {
  const auto images = random_images(6);
  const Indices chosen = {4, 0, 4, 5};
  const auto batch = BatchMaker(kZeros, kOnes).make(images, chosen);
  const auto rows = torch::tensor(chosen);
  EXPECT_TRUE(batch.labels.equal(images.labels.index_select(0, rows)));
  EXPECT_TRUE(
      (batch.images * 255).round().to(torch::kUInt8).equal(images.pixels.index_select(0, rows)));
}

TEST(BatchMaker, StoresChannelsLast) {
  const auto batch = BatchMaker(kZeros, kOnes).make(random_images(4), {0, 1, 2});
  EXPECT_EQ(batch.images.sizes(), (torch::IntArrayRef{3, 3, 5, 7}));
  EXPECT_EQ(batch.images.scalar_type(), torch::kFloat32);
  EXPECT_TRUE(batch.images.is_contiguous(torch::MemoryFormat::ChannelsLast));
  EXPECT_FALSE(batch.images.is_contiguous());
}

TEST(BatchMaker, TakesImagesOfOneChannel) {
  const auto images = random_images(2, 1);
  const auto batch = BatchMaker({0.5, 0, 0}, {0.5, 1, 1}).make(images, {1});
  const auto expected = images.pixels.narrow(0, 1, 1).to(torch::kFloat64) / 127.5 - 1;
  EXPECT_LT((batch.images.to(torch::kFloat64) - expected).abs().max().item<double>(), 1e-6);
}

TEST(BatchMaker, GivesTheSameBytesOnOneThreadAndOnTwo) {
  const auto images = random_images(100);
  const auto indices = epoch_order(3, 0, 100);
  const BatchMaker batches({0.4, 0.5, 0.6}, {0.2, 0.3, 0.4});
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = batches.make(images, indices);
  at::set_num_threads(2);
  const auto two = batches.make(images, indices);
  at::set_num_threads(threads);
  EXPECT_TRUE(one.images.equal(two.images));
  EXPECT_TRUE(one.labels.equal(two.labels));
}

TEST(BatchMaker, RejectsADeviationOfZero) {
  EXPECT_EQ(error_of([] {
              BatchMaker(kZeros, {1, 0, 1});
            }),
            "BatchMaker: deviation must be above 0, got 0");
}

TEST(BatchMaker, RejectsIndicesOutsideOfTheImages) {
  const BatchMaker batches(kZeros, kOnes);
  for (const auto& indices : std::vector<std::vector<int64_t>>{{}, {2}, {-1, 0}}) {
    EXPECT_EQ(error_of([&] { batches.make(random_images(2), indices); }),
              "BatchMaker: indices must be in [0, 2) and at least one");
  }
}

TEST(BatchMaker, RejectsMoreThanThreeChannels) {
  const BatchMaker batches(kZeros, kOnes);
  EXPECT_EQ(error_of([&] { batches.make(random_images(2, 4), {0}); }),
            "BatchMaker: images must have at most 3 channels, got 4");
}

}  // namespace
}  // namespace kelvin
