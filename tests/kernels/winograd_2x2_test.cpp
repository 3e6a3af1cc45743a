#include "kelvin/kernels/winograd_2x2.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kelvin/ops/convolution_3x3.h"
#include "kelvin/ops/tensors.h"
#include "tests/support/tensors.h"

// Transforms of small whole numbers are bfloat16 as they are, if those of weights are multiples of
// 4, and sums of their products are float32: results must be those of float64, rounded once.

namespace kelvin::winograd_2x2_test {

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;

torch::Tensor whole(const std::vector<int64_t>& sizes, uint64_t seed) {
  return (2 * noise(sizes, seed)).round().clamp(-3, 3);
}

torch::Tensor maps_of(const torch::Tensor& values) {
  return values.to(torch::kBFloat16).contiguous(kChannelsLast);
}

torch::Tensor transformed_weights(const WinogradShape& shape,
                                  const WinogradWeights<const float>& weights) {
  auto result = torch::empty({kWinograd2x2Points * shape.inputs * shape.outputs}, torch::kBFloat16);
  for (int64_t output = 0; output < shape.outputs; output += kWinogradLanes) {
    winograd_2x2_weights(weights, shape, output, output + kWinogradLanes, numbers(result));
  }
  return result;
}

torch::Tensor convolved(const WinogradShape& shape, const torch::Tensor& maps,
                        const WinogradWeights<const float>& weights, const float* bias = nullptr) {
  auto results = empty_results(shape, maps).fill_(NAN);
  winograd_2x2_forward(shape, numbers(maps), numbers(transformed_weights(shape, weights)), bias,
                       numbers(results), 0, winograd_2x2_rows(shape));
  return results;
}

// By as many parts, each in shares whose rows are transformed one by one.  All buffers begin as
// NaN.
torch::Tensor weight_gradient(const WinogradShape& shape, const torch::Tensor& maps,
                              const torch::Tensor& gradients, int64_t parts) {
  const auto buffer = [&](int64_t channels) {
    return torch::full({winograd_2x2_share_size(shape, channels)}, NAN, torch::kBFloat16);
  };
  const auto inputs = buffer(shape.inputs);
  const auto outputs = buffer(shape.outputs);
  const WinogradShareMaps share{.inputs = numbers(inputs), .gradients = numbers(outputs)};
  const auto sums =
      torch::full({parts, kWinograd2x2Points, shape.inputs, shape.outputs}, NAN, torch::kFloat32);
  const auto rows = winograd_2x2_rows(shape);
  const auto size = winograd_2x2_rows_of_a_share(shape);
  for (int64_t part = 0; part < parts; ++part) {
    const auto start = part * rows / parts;
    const auto stop = (part + 1) * rows / parts;
    auto* sum = sums[part].data_ptr<float>();
    for (auto first = start; first < stop; first += size) {
      const auto last = std::min(first + size, stop);
      for (auto row = last - 1; row >= first; --row) {
        winograd_2x2_share(shape, numbers(maps), numbers(gradients), first, row, row + 1, share);
      }
      winograd_2x2_weight_gradient(shape, share, last - first, first == start, 5, 16, sum);
      winograd_2x2_weight_gradient(shape, share, last - first, first == start, 0, 5, sum);
    }
  }
  auto gradient = torch::full({shape.outputs, shape.inputs, 3, 3}, NAN, torch::kFloat32);
  for (int64_t output = 0; output < shape.outputs; output += kWinogradLanes) {
    winograd_2x2_untransformed(sums.data_ptr<float>(), parts, shape, output,
                               output + kWinogradLanes, layout_of<float>(gradient));
  }
  return gradient;
}

class Winograd2x2Kernels : public testing::TestWithParam<WinogradShape> {
 protected:
  void SetUp() override {
    if (!has_winograd_2x2()) GTEST_SKIP() << "no products of bfloat16";
  }
  const WinogradShape shape_ = GetParam();
  const torch::Tensor x_ =
      whole({shape_.images, shape_.inputs, shape_.height, shape_.width}, 1).set_requires_grad(true);
  const torch::Tensor w_ =
      (4 * whole({shape_.outputs, shape_.inputs, 3, 3}, 2)).set_requires_grad(true);
  const torch::Tensor seen_ =
      whole({shape_.images, shape_.outputs, shape_.height, shape_.width}, 3);
  const torch::Tensor maps_ = maps_of(x_.detach());
  const torch::Tensor gradients_ = maps_of(seen_);
  const torch::Tensor weight_ = w_.detach().to(torch::kFloat32);
};

TEST_P(Winograd2x2Kernels, AreExactOnSmallWholeNumbers) {
  const auto b = whole({shape_.outputs}, 4);
  const auto expected = torch::conv2d(x_, w_, b, 1, 1);
  expected.backward(seen_);
  const auto bias = b.to(torch::kFloat32);
  EXPECT_TRUE(convolved(shape_, maps_, layout_of<const float>(weight_), bias.data_ptr<float>())
                  .equal(expected.to(torch::kBFloat16)));

  auto back = shape_;
  std::swap(back.inputs, back.outputs);
  EXPECT_TRUE(convolved(back, gradients_, mirrored(layout_of<const float>(weight_)))
                  .equal(x_.grad().to(torch::kBFloat16)));

  for (const int64_t parts : {1, 3}) {
    if (parts > winograd_2x2_rows(shape_)) continue;
    EXPECT_TRUE(
        weight_gradient(shape_, maps_, gradients_, parts).equal(w_.grad().to(torch::kFloat32)))
        << parts;
  }
}

// From the last row to the first, so that none may write what is another's.
TEST_P(Winograd2x2Kernels, GiveEachRowTheSameBitsAloneAndAmongOthers) {
  const auto maps = maps_of(noise(maps_.sizes().vec(), 5));
  const auto weight = noise(weight_.sizes().vec(), 6).to(torch::kFloat32);
  const auto together = convolved(shape_, maps, layout_of<const float>(weight));
  auto alone = torch::full_like(together, NAN);
  const auto transformed = transformed_weights(shape_, layout_of<const float>(weight));
  for (auto row = winograd_2x2_rows(shape_) - 1; row >= 0; --row) {
    winograd_2x2_forward(shape_, numbers(maps), numbers(transformed), nullptr, numbers(alone), row,
                         row + 1);
  }
  EXPECT_TRUE(alone.equal(together));
}

TEST_P(Winograd2x2Kernels, CountRowsOfTilesThatCoverTheMaps) {
  EXPECT_EQ(winograd_2x2_rows(shape_), shape_.images * ((shape_.height + 1) / 2));
  EXPECT_GE(winograd_2x2_rows_of_a_share(shape_), 1);
  EXPECT_EQ(winograd_2x2_is_narrow(shape_), shape_.inputs * shape_.outputs <= int64_t{64} * 64);
}

// One tile; maps that tiles do not cover exactly, rows of an odd number of them; more outputs than
// a panel has; more rows than a share has, of narrow and of wide layers.
INSTANTIATE_TEST_SUITE_P(
    Shapes, Winograd2x2Kernels,
    testing::Values(
        WinogradShape{.images = 1, .height = 2, .width = 2, .inputs = 16, .outputs = 16},
        WinogradShape{.images = 2, .height = 5, .width = 7, .inputs = 16, .outputs = 48},
        WinogradShape{.images = 3, .height = 3, .width = 2, .inputs = 32, .outputs = 16},
        WinogradShape{.images = 1, .height = 4, .width = 33, .inputs = 16, .outputs = 80},
        WinogradShape{.images = 3, .height = 32, .width = 32, .inputs = 16, .outputs = 16},
        WinogradShape{.images = 1, .height = 7, .width = 258, .inputs = 80, .outputs = 64}));

}  // namespace kelvin::winograd_2x2_test
