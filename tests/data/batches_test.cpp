#include "kelvin/data/batches.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::batches_test {

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
  for (const int count : counts) EXPECT_NEAR(count, 400, 95);
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
  const std::array<double, 3> std_dev = {0.1, 0.2, 2};
  const auto batch = BatchMaker(mean, std_dev).make(images, {0, 1, 2, 3});
  const auto pixels = images.pixels.to(torch::kFloat64) / 255;
  for (int64_t channel = 0; channel < 3; ++channel) {
    const auto c = static_cast<size_t>(channel);
    const auto expected = (pixels.select(1, channel) - mean.at(c)) / std_dev.at(c);
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

constexpr std::array kAugmentations = {Augmentation::none, Augmentation::flip, Augmentation::crop,
                                       Augmentation::crop_flip};

// Step by step with torch: pad with black, take the window, mirror it, normalise.
torch::Tensor reference(const torch::Tensor& pixels, const View& view) {
  using torch::indexing::Slice;
  const auto height = pixels.size(1);
  const auto width = pixels.size(2);
  const auto padded = torch::constant_pad_nd(pixels, {4, 4, 4, 4}, 0);
  auto window = padded.index({Slice(), Slice(4 + view.shift_y, 4 + view.shift_y + height),
                              Slice(4 + view.shift_x, 4 + view.shift_x + width)});
  if (view.is_flipped) window = window.flip({2});
  const auto mean = torch::tensor({0.4, 0.5, 0.6}, torch::kFloat64).view({3, 1, 1});
  const auto deviation = torch::tensor({0.2, 0.3, 0.4}, torch::kFloat64).view({3, 1, 1});
  return (window.to(torch::kFloat64) / 255 - mean) / deviation;
}

TEST(BatchMaker, AugmentsAsPaddingCroppingAndFlippingOneAfterTheOtherDo) {
  const auto images = random_images(200);
  for (const auto augmentation : kAugmentations) {
    const BatchMaker batches({0.4, 0.5, 0.6}, {0.2, 0.3, 0.4},
                             {.augmentation = augmentation, .seed = 9});
    const auto batch = batches.make(images, epoch_order(1, 0, 200), /*epoch=*/3);
    const auto order = epoch_order(1, 0, 200);
    for (int64_t i = 0; i < 200; ++i) {
      const auto index = order[static_cast<size_t>(i)];
      auto stream = view_stream(9, 3, index);
      const auto expected = reference(images.pixels[index], draw_view(augmentation, stream));
      expect_close(batch.images[i], expected, 1e-5);
    }
  }
}

TEST(BatchMaker, ShowsAnImageAlikeInWhateverBatchItIs) {
  const auto images = random_images(64);
  const BatchMaker batches(kZeros, kOnes, {.augmentation = Augmentation::crop_flip, .seed = 4});
  const auto all = batches.make(images, epoch_order(2, 0, 64), 7);
  const auto order = epoch_order(2, 0, 64);
  for (size_t i = 0; i < order.size(); i += 9) {
    const auto alone = batches.make(images, {order[i]}, 7);
    EXPECT_TRUE(alone.images[0].equal(all.images[static_cast<int64_t>(i)]));
  }
  EXPECT_FALSE(batches.make(images, order, 8).images.equal(all.images)) << "another epoch";
  const BatchMaker other(kZeros, kOnes, {.augmentation = Augmentation::crop_flip, .seed = 5});
  EXPECT_FALSE(other.make(images, order, 7).images.equal(all.images)) << "another seed";
}

TEST(BatchMaker, AugmentsAlikeOnOneThreadOnTwoAndWithoutTheOthers) {
  const auto images = random_images(100);
  const auto indices = epoch_order(3, 0, 100);
  BatchOptions options{.augmentation = Augmentation::crop_flip, .seed = 1};
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = BatchMaker(kZeros, kOnes, options).make(images, indices, 2);
  at::set_num_threads(2);
  const auto two = BatchMaker(kZeros, kOnes, options).make(images, indices, 2);
  options.on_all_cores = false;
  const auto alone = BatchMaker(kZeros, kOnes, options).make(images, indices, 2);
  at::set_num_threads(threads);
  EXPECT_TRUE(one.images.equal(two.images));
  EXPECT_TRUE(one.images.equal(alone.images));
}

TEST(BatchMaker, ShowsAllImagesOnceAndThenAllOnceMore) {
  const auto images = random_images(30);
  const auto indices = epoch_order(3, 0, 30);
  BatchOptions options{.augmentation = Augmentation::crop_flip, .seed = 1};
  const auto one = BatchMaker(kZeros, kOnes, options).make(images, indices, 4);
  options.views = 2;
  const BatchMaker batches(kZeros, kOnes, options);
  const auto two = batches.make(images, indices, 4);
  ASSERT_EQ(two.images.size(0), 60);
  EXPECT_TRUE(two.images.is_contiguous(torch::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(two.labels.equal(one.labels.repeat({2})));
  const auto first = two.images.narrow(0, 0, 30);
  const auto second = two.images.narrow(0, 30, 30);
  EXPECT_TRUE(first.equal(one.images));
  int64_t differing = 0;
  for (int64_t i = 0; i < 30; ++i) differing += second[i].equal(first[i]) ? 0 : 1;
  EXPECT_GE(differing, 28) << "of 162 views two are rarely the same";
  // Whatever else is in the batch, in whichever order.
  const std::vector<int64_t> some = {indices[7], indices[2]};
  const auto part = batches.make(images, some, 4).images;
  EXPECT_TRUE(part[2].equal(second[7]));
  EXPECT_TRUE(part[3].equal(second[2]));
  EXPECT_FALSE(batches.make(images, indices, 5).images.narrow(0, 30, 30).equal(second));
}

TEST(BatchMaker, ShowsEqualViewsWithoutAugmentation) {
  const auto batch = BatchMaker(kZeros, kOnes, {.views = 2}).make(random_images(5), {4, 1});
  EXPECT_TRUE(batch.images.narrow(0, 0, 2).equal(batch.images.narrow(0, 2, 2)));
}

TEST(BatchMaker, RejectsNoViews) {
  EXPECT_EQ(error_of([] { BatchMaker(kZeros, kOnes, {.views = 0}); }),
            "BatchMaker: views must be at least 1, got 0");
}

TEST(BatchMaker, RoundsToBfloat16AsTorchDoes) {
  const auto images = random_images(20);
  const auto indices = epoch_order(3, 0, 20);
  const std::array<double, 3> mean = {0.4, 0.5, 0.6};
  const std::array<double, 3> std_dev = {0.2, 0.3, 0.4};
  BatchOptions options{.augmentation = Augmentation::crop_flip, .seed = 1};
  const auto floats = BatchMaker(mean, std_dev, options).make(images, indices);
  options.type = torch::kBFloat16;
  const auto halves = BatchMaker(mean, std_dev, options).make(images, indices);
  EXPECT_EQ(halves.images.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(halves.images.is_contiguous(torch::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(halves.images.equal(floats.images.to(torch::kBFloat16)));
}

TEST(BatchMaker, ShowsNothingButBlackWhenTheWindowIsBesideTheImage) {
  const Images images{.pixels = torch::full({50, 3, 2, 2}, 255, torch::kUInt8),
                      .labels = torch::zeros({50}, torch::kInt64)};
  const BatchMaker batches(kZeros, kOnes, {.augmentation = Augmentation::crop_flip});
  const auto batch = batches.make(images, epoch_order(0, 0, 50));
  for (int64_t i = 0; i < 50; ++i) {
    auto stream = view_stream(0, 0, epoch_order(0, 0, 50)[static_cast<size_t>(i)]);
    const auto view = draw_view(Augmentation::crop_flip, stream);
    const auto seen = std::max<int64_t>(0, 2 - std::abs(view.shift_x)) *
                      std::max<int64_t>(0, 2 - std::abs(view.shift_y));
    EXPECT_EQ(batch.images[i].sum().item<double>(), 3.0 * static_cast<double>(seen));
  }
}

TEST(ShuffledSample, HasTheIndicesOfTheFixedOneInAnotherOrder) {
  auto shuffled = shuffled_sample(5, 40, 100);
  const auto fixed = fixed_sample(5, 40, 100);
  EXPECT_NE(shuffled, fixed);
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, fixed);
}

TEST(BatchMaker, EnlargesBatchesBilinearly) {
  Images images{.pixels = torch::zeros({2, 3, 2, 2}, torch::kUInt8),
                .labels = torch::zeros({2}, torch::kInt64)};
  images.pixels[1][2][0][1] = 255;
  const auto batch = BatchMaker(kZeros, kOnes, {.upsample_to = 4}).make(images, {1, 0});
  EXPECT_EQ(batch.images.sizes(), (torch::IntArrayRef{2, 3, 4, 4}));
  // Pixel centres: a quarter and three quarters of the way, the border repeated.
  const auto expected = torch::tensor({{0.0F, 0.25F, 0.75F, 1.0F},
                                       {0.0F, 0.1875F, 0.5625F, 0.75F},
                                       {0.0F, 0.0625F, 0.1875F, 0.25F},
                                       {0.0F, 0.0F, 0.0F, 0.0F}});
  EXPECT_TRUE(torch::allclose(batch.images[0][2], expected));
  EXPECT_EQ(batch.images[1].abs().max().item<float>(), 0);
}

TEST(BatchMaker, ShowsImagesAsTheDatasetWantsThemSeen) {
  Dataset dataset;
  dataset.test = random_images(4);
  dataset.mean = {0.1, 0.2, 0.3};
  dataset.std_dev = {0.4, 0.5, 0.6};
  dataset.upsample_to = 9;
  const auto batch = BatchMaker(dataset).make(dataset.test, {2, 3});
  const auto expected = BatchMaker(dataset.mean, dataset.std_dev, {.upsample_to = 9});
  EXPECT_TRUE(batch.images.equal(expected.make(dataset.test, {2, 3}).images));
  EXPECT_EQ(dataset.shown_shape().height, batch.images.size(2));
  EXPECT_EQ(dataset.shown_shape().width, batch.images.size(3));
}

TEST(BatchMaker, RejectsOtherTypesThanFloatAndBfloat16) {
  EXPECT_EQ(error_of([] { BatchMaker(kZeros, kOnes, {.type = torch::kFloat64}); }),
            "BatchMaker: batches are float32 or bfloat16, not Double");
}

TEST(BatchMaker, RejectsResizedCropsOfImagesInMemory) {
  const BatchMaker batches(kZeros, kOnes, {.augmentation = Augmentation::resized_crop_flip});
  EXPECT_EQ(error_of([&] { batches.make(random_images(2), {0}); }),
            "data.augment: resized-crop-flip is for images on disk; for images in memory there is "
            "crop-flip");
}

}  // namespace kelvin::batches_test
