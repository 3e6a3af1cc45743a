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

namespace kelvin::winograd_2x2_gradient_test {

torch::Tensor weight_gradient(const WinogradShape& shape, const torch::Tensor& maps,
                              const torch::Tensor& gradients, const WinogradWorkers& workers) {
  auto gradient = torch::full({shape.outputs, shape.inputs, 3, 3}, NAN, torch::kFloat32);
  winograd_2x2_weight_gradient(shape, numbers(maps), numbers(gradients), layout_of<float>(gradient),
                               workers);
  return gradient;
}

class Winograd2x2Gradient : public Winograd2x2OnWholeNumbers {
 protected:
  int64_t rows() const { return shape_.images * ((shape_.height + 1) / 2); }
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

INSTANTIATE_TEST_SUITE_P(Shapes, Winograd2x2Gradient, testing::ValuesIn(winograd_2x2_shapes()));

}  // namespace kelvin::winograd_2x2_gradient_test
