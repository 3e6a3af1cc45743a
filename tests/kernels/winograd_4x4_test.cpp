#include "kelvin/kernels/winograd_4x4.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "tests/support/winograd.h"

// What they compute is compared with LibTorch's convolutions in convolution_3x3_test.cpp; here is
// what holds without them.

namespace kelvin::winograd_4x4_test {

using Floats = std::vector<float>;

Floats drawn(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Floats values(static_cast<size_t>(count));
  for (auto& value : values) value = normal(generator);
  return values;
}

double product(const Floats& left, const Floats& right) {
  return std::inner_product(left.begin(), left.end(), right.begin(), 0.0, std::plus<>(),
                            [](float a, float b) { return double{a} * double{b}; });
}

WinogradWeights<const float> channels_last(const Floats& weights, int64_t inputs) {
  return {.data = weights.data(),
          .output_step = 9 * inputs,
          .row_step = 3 * inputs,
          .column_step = inputs,
          .input_step = 1};
}

Floats convolved(const WinogradShape& shape, const Floats& maps,
                 const WinogradWeights<const float>& weights,
                 const WinogradWorkers& workers = whole_ranges()) {
  Floats results(static_cast<size_t>(shape.images * shape.height * shape.width * shape.outputs));
  winograd_4x4_forward(shape, maps.data(), weights, nullptr, results.data(), workers);
  return results;
}

const WinogradShape kShape = {.images = 2, .height = 6, .width = 9, .inputs = 16, .outputs = 32};
constexpr int64_t kPixels = 2 * 6 * 9;

class Winograd4x4Kernels : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_winograd_4x4()) GTEST_SKIP() << "no AVX2";
  }
  const Floats maps_ = drawn(kPixels * kShape.inputs, 1);
  const Floats gradients_ = drawn(kPixels * kShape.outputs, 2);
  const Floats weights_ = drawn(kShape.outputs * 9 * kShape.inputs, 3);
  const double scale_ = product(gradients_, convolved(kShape, maps_, channels_last(weights_, 16)));
};

int64_t tiles_of(const WinogradShape& shape) {
  const Floats maps(static_cast<size_t>(shape.images * shape.height * shape.width * shape.inputs));
  const Floats weights(static_cast<size_t>(shape.outputs * 9 * shape.inputs));
  std::vector<int64_t> loops;
  convolved(shape, maps, channels_last(weights, shape.inputs), noting(loops));
  return loops.back();
}

TEST_F(Winograd4x4Kernels, CountTilesThatCoverTheMaps) {
  EXPECT_EQ(tiles_of(kShape), 2 * 2 * 3);
  EXPECT_EQ(tiles_of({.images = 3, .height = 4, .width = 8, .inputs = 16, .outputs = 16}), 6);
}

// <g, conv(x, w)> is linear in x, so the gradient is known from it.
TEST_F(Winograd4x4Kernels, GoBackwardByTheTransposeOfForward) {
  const WinogradShape back = {.images = 2, .height = 6, .width = 9, .inputs = 32, .outputs = 16};
  const auto of_maps = convolved(back, gradients_, mirrored(channels_last(weights_, 16)));
  EXPECT_NEAR(product(of_maps, maps_), scale_, 1e-4 * std::abs(scale_));
}

TEST_F(Winograd4x4Kernels, GiveEachTileTheSameBitsAloneAndAmongOthers) {
  const auto layout = channels_last(weights_, 16);
  EXPECT_EQ(convolved(kShape, maps_, layout, single_places()), convolved(kShape, maps_, layout));
}

}  // namespace kelvin::winograd_4x4_test
