#include "kelvin/kernels/winograd_2x2.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <utility>
#include <vector>

#include "kelvin/ops/convolution_3x3.h"
#include "kelvin/ops/tensors.h"
#include "tests/support/tensors.h"
#include "tests/support/winograd.h"

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

torch::Tensor convolved(const WinogradShape& shape, const torch::Tensor& maps,
                        const WinogradWeights<const float>& weights, const WinogradWorkers& workers,
                        const float* bias = nullptr) {
  auto results =
      torch::full({shape.images, shape.outputs, shape.height, shape.width}, NAN, torch::kBFloat16)
          .contiguous(kChannelsLast);
  winograd_2x2_forward(shape, numbers(maps), weights, bias, numbers(results), workers);
  return results;
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
  EXPECT_TRUE(convolved(shape_, maps_, layout_of<const float>(weight_), whole_ranges(),
                        bias.data_ptr<float>())
                  .equal(expected.to(torch::kBFloat16)));

  auto back = shape_;
  std::swap(back.inputs, back.outputs);
  EXPECT_TRUE(convolved(back, gradients_, mirrored(layout_of<const float>(weight_)), whole_ranges())
                  .equal(x_.grad().to(torch::kBFloat16)));
}

TEST_P(Winograd2x2Kernels, GiveEachRowTheSameBitsAloneAndAmongOthers) {
  const auto maps = maps_of(noise(maps_.sizes().vec(), 5));
  const auto weight = noise(weight_.sizes().vec(), 6).to(torch::kFloat32);
  const auto layout = layout_of<const float>(weight);
  EXPECT_TRUE(convolved(shape_, maps, layout, single_places())
                  .equal(convolved(shape_, maps, layout, whole_ranges())));
}

TEST_P(Winograd2x2Kernels, CountRowsOfTilesThatCoverTheMaps) {
  std::vector<int64_t> loops;
  convolved(shape_, maps_, layout_of<const float>(weight_), noting(loops));
  EXPECT_EQ(loops, (std::vector<int64_t>{shape_.outputs / kWinogradLanes,
                                         shape_.images * ((shape_.height + 1) / 2)}));
}

// One tile; maps that tiles do not cover exactly, rows of an odd number of them; more outputs than
// a panel has; many rows, of narrow and of wide layers.
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
