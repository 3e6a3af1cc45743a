#include "kelvin/data/batch_stream.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <vector>

#include "tests/support/errors.h"

namespace kelvin::batch_stream_test {

constexpr std::array<double, 3> kZeros = {0, 0, 0};
constexpr std::array<double, 3> kOnes = {1, 1, 1};

class BatchStreamTest : public testing::Test {
 protected:
  static constexpr int64_t kSamples = 103;

  BatchStreamTest() {
    torch::manual_seed(1);
    images_ = {.pixels = torch::randint(256, {kSamples, 3, 8, 8}, torch::kUInt8),
               .labels = torch::arange(kSamples, torch::kInt64)};
  }

  Images images_;
  BatchMaker maker_{kZeros, kOnes, {.augmentation = Augmentation::crop_flip, .seed = 3}};
};

TEST_F(BatchStreamTest, GivesTheBatchesThatTheMakerWouldGive) {
  const auto order = epoch_order(1, 4, kSamples);
  BatchStream stream(maker_, images_, order, 10, /*epoch=*/4);
  size_t begin = 0;
  while (const auto batch = stream.next()) {
    const auto end = std::min(begin + 10, order.size());
    const std::vector<int64_t> indices(order.begin() + static_cast<int64_t>(begin),
                                       order.begin() + static_cast<int64_t>(end));
    const auto expected = maker_.make(images_, indices, 4);
    EXPECT_TRUE(batch->images.equal(expected.images));
    EXPECT_TRUE(batch->labels.equal(expected.labels));
    begin = end;
  }
  EXPECT_EQ(begin, order.size());
  EXPECT_FALSE(stream.next().has_value()) << "stays at its end";
}

TEST_F(BatchStreamTest, GivesASingleLastImageToTheBatchBeforeIt) {
  for (const int64_t samples : {1, 10, 11, 12, 20, 21}) {
    const auto order = epoch_order(1, 0, samples);
    BatchStream stream(maker_, images_, order, 10, /*epoch=*/0);
    std::vector<int64_t> sizes;
    int64_t sum = 0;
    while (const auto batch = stream.next()) sizes.push_back(batch->labels.size(0));
    for (const auto size : sizes) sum += size;
    EXPECT_EQ(sum, samples);
    EXPECT_EQ(static_cast<int64_t>(sizes.size()), count_batches(samples, 10)) << samples;
    if (samples > 1) {
      EXPECT_GT(sizes.back(), 1) << samples;
    }
  }
  EXPECT_EQ(count_batches(11, 10), 1);
  EXPECT_EQ(count_batches(12, 10), 2);
  EXPECT_EQ(count_batches(50'000, 128), 391);
  EXPECT_EQ(count_batches(0, 10), 0);
}

TEST_F(BatchStreamTest, EndsAtOnceWithoutSamples) {
  BatchStream stream(maker_, images_, {}, 10, 0);
  EXPECT_FALSE(stream.next().has_value());
}

TEST_F(BatchStreamTest, CanBeLeftAtAnyTime) {
  for (int taken = 0; taken < 5; ++taken) {
    BatchStream stream(maker_, images_, epoch_order(1, 0, kSamples), 10, 0);
    for (int i = 0; i < taken; ++i) EXPECT_TRUE(stream.next().has_value());
  }
}

TEST_F(BatchStreamTest, GivesWhatWasMadeBeforeItThrowsWhatTheMakerThrew) {
  auto order = epoch_order(1, 0, kSamples);
  order[25] = kSamples;
  BatchStream stream(maker_, images_, order, 10, 0);
  EXPECT_TRUE(stream.next().has_value());
  EXPECT_TRUE(stream.next().has_value());
  EXPECT_EQ(error_of([&] { stream.next(); }),
            "BatchMaker: indices must be in [0, 103) and at least one");
}

TEST_F(BatchStreamTest, RejectsABatchSizeOfZero) {
  EXPECT_EQ(error_of([&] { BatchStream(maker_, images_, {0}, 0, 0); }),
            "BatchStream: batch_size must be at least 1, got 0");
}

}  // namespace kelvin::batch_stream_test
