#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kelvin/kernels/winograd_2x2.h"
#include "kelvin/ops/convolution_3x3.h"
#include "kelvin/ops/tensors.h"
#include "tests/support/tensors.h"
#include "tests/support/winograd.h"

// As in winograd_2x2_test.cpp, small whole numbers must give what float64 does, rounded once.

namespace kelvin::winograd_2x2_gradient_test {

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;

torch::Tensor whole(const std::vector<int64_t>& sizes, uint64_t seed) {
  return (2 * noise(sizes, seed)).round().clamp(-3, 3);
}

torch::Tensor maps_of(const torch::Tensor& values) {
  return values.to(torch::kBFloat16).contiguous(kChannelsLast);
}

torch::Tensor weight_gradient(const WinogradShape& shape, const torch::Tensor& maps,
                              const torch::Tensor& gradients, const WinogradWorkers& workers) {
  auto gradient = torch::full({shape.outputs, shape.inputs, 3, 3}, NAN, torch::kFloat32);
  winograd_2x2_weight_gradient(shape, numbers(maps), numbers(gradients), layout_of<float>(gradient),
                               workers);
  return gradient;
}

class Winograd2x2Gradient : public testing::TestWithParam<WinogradShape> {
 protected:
  void SetUp() override {
    if (!has_winograd_2x2()) GTEST_SKIP() << "no products of bfloat16";
  }
  int64_t rows() const { return shape_.images * ((shape_.height + 1) / 2); }

  const WinogradShape shape_ = GetParam();
  const torch::Tensor x_ =
      whole({shape_.images, shape_.inputs, shape_.height, shape_.width}, 1).set_requires_grad(true);
  const torch::Tensor w_ =
      (4 * whole({shape_.outputs, shape_.inputs, 3, 3}, 2)).set_requires_grad(true);
  const torch::Tensor seen_ =
      whole({shape_.images, shape_.outputs, shape_.height, shape_.width}, 3);
  const torch::Tensor maps_ = maps_of(x_.detach());
  const torch::Tensor gradients_ = maps_of(seen_);
};

TEST_P(Winograd2x2Gradient, IsExactOnSmallWholeNumbers) {
  torch::conv2d(x_, w_, {}, 1, 1).backward(seen_);
  const auto expected = w_.grad().to(torch::kFloat32);
  for (const int64_t threads : {1, 3}) {
    EXPECT_TRUE(weight_gradient(shape_, maps_, gradients_, single_places(threads)).equal(expected))
        << threads;
    EXPECT_TRUE(weight_gradient(shape_, maps_, gradients_, whole_ranges(threads)).equal(expected))
        << threads;
  }
}

// Each thread sums rows of its own where weights are few; otherwise all work at the same 16 points.
TEST_P(Winograd2x2Gradient, IsSummedApartInNarrowLayersOnly) {
  constexpr int64_t kThreads = 3;
  std::vector<int64_t> loops;
  weight_gradient(shape_, maps_, gradients_, noting(loops, kThreads));
  ASSERT_GE(loops.size(), 2U);
  const bool is_narrow = shape_.inputs * shape_.outputs <= int64_t{64} * 64;
  if (is_narrow && rows() > 1) {
    EXPECT_EQ(loops,
              (std::vector<int64_t>{std::min(kThreads, rows()), shape_.outputs / kWinogradLanes}));
  } else {
    EXPECT_EQ(loops.size() % 2, 1U);
    int64_t transformed = 0;
    for (size_t i = 0; i + 1 < loops.size(); i += 2) {
      EXPECT_GE(loops[i], 1);
      EXPECT_EQ(loops[i + 1], 16);
      transformed += loops[i];
    }
    EXPECT_EQ(transformed, rows());
  }
}

// One tile; maps that tiles do not cover exactly, rows of an odd number of them; more rows than a
// block has, of narrow and of wide layers.
INSTANTIATE_TEST_SUITE_P(
    Shapes, Winograd2x2Gradient,
    testing::Values(
        WinogradShape{.images = 1, .height = 2, .width = 2, .inputs = 16, .outputs = 16},
        WinogradShape{.images = 2, .height = 5, .width = 7, .inputs = 16, .outputs = 48},
        WinogradShape{.images = 3, .height = 3, .width = 2, .inputs = 32, .outputs = 16},
        WinogradShape{.images = 1, .height = 4, .width = 33, .inputs = 16, .outputs = 80},
        WinogradShape{.images = 3, .height = 32, .width = 32, .inputs = 16, .outputs = 16},
        WinogradShape{.images = 1, .height = 7, .width = 258, .inputs = 80, .outputs = 64}));

}  // namespace kelvin::winograd_2x2_gradient_test
