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

namespace kelvin::winograd_2x2_test {

torch::Tensor convolved(const WinogradShape& shape, const torch::Tensor& maps,
                        const WinogradWeights<const float>& weights, const WinogradWorkers& workers,
                        const float* bias = nullptr) {
  auto results =
      torch::full({shape.images, shape.outputs, shape.height, shape.width}, NAN, torch::kBFloat16)
          .contiguous(torch::MemoryFormat::ChannelsLast);
  winograd_2x2_forward(shape, numbers(maps), weights, bias, numbers(results), workers);
  return results;
}

class Winograd2x2Kernels : public Winograd2x2OnWholeNumbers {
 protected:
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
  const auto maps = winograd_maps(noise(maps_.sizes().vec(), 5), torch::kBFloat16);
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

INSTANTIATE_TEST_SUITE_P(Shapes, Winograd2x2Kernels, testing::ValuesIn(winograd_2x2_shapes()));

}  // namespace kelvin::winograd_2x2_test
