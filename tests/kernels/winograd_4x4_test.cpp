#include "kelvin/kernels/winograd_4x4.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/winograd.h"

// What they compute is compared with LibTorch's convolutions in convolution_3x3_test.cpp; here is
// what holds without them.

namespace kelvin::winograd_4x4_test {

class Winograd4x4Kernels : public Winograd4x4OnArrays {
 protected:
  static Floats convolved(const WinogradShape& shape, const Floats& maps,
                          const WinogradWeights<const float>& weights,
                          const WinogradWorkers& workers = whole_ranges()) {
    Floats results(static_cast<size_t>(shape.images * shape.height * shape.width * shape.outputs));
    winograd_4x4_forward(shape, maps.data(), weights, nullptr, results.data(), workers);
    return results;
  }

  static int64_t tiles_of(const WinogradShape& shape) {
    const Floats maps(
        static_cast<size_t>(shape.images * shape.height * shape.width * shape.inputs));
    const Floats weights(static_cast<size_t>(shape.outputs * 9 * shape.inputs));
    std::vector<int64_t> loops;
    convolved(shape, maps, channels_last(weights.data(), shape.inputs), noting(loops));
    return loops.back();
  }

  static constexpr int64_t kPixels = 2 * 6 * 9;

  const Floats maps_ = drawn(kPixels * kShape.inputs, 1);
  const Floats gradients_ = drawn(kPixels * kShape.outputs, 2);
  const Floats weights_ = drawn(kShape.outputs * 9 * kShape.inputs, 3);
  const WinogradWeights<const float> layout_ = channels_last(weights_.data(), 16);
  const double scale_ = product(gradients_, convolved(kShape, maps_, layout_));
};

TEST_F(Winograd4x4Kernels, CountTilesThatCoverTheMaps) {
  EXPECT_EQ(tiles_of(kShape), 2 * 2 * 3);
  EXPECT_EQ(tiles_of({.images = 3, .height = 4, .width = 8, .inputs = 16, .outputs = 16}), 6);
}

// <g, conv(x, w)> is linear in x, so the gradient is known from it.
TEST_F(Winograd4x4Kernels, GoBackwardByTheTransposeOfForward) {
  const WinogradShape back = {.images = 2, .height = 6, .width = 9, .inputs = 32, .outputs = 16};
  const auto of_maps = convolved(back, gradients_, mirrored(layout_));
  EXPECT_NEAR(product(of_maps, maps_), scale_, 1e-4 * std::abs(scale_));
}

TEST_F(Winograd4x4Kernels, GiveEachTileTheSameBitsAloneAndAmongOthers) {
  EXPECT_EQ(convolved(kShape, maps_, layout_, single_places()), convolved(kShape, maps_, layout_));
}

}  // namespace kelvin::winograd_4x4_test
