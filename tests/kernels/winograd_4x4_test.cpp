#include "kelvin/kernels/winograd_4x4.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

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
                 const WinogradWeights<const float>& weights) {
  Floats transformed(static_cast<size_t>(kWinograd4x4Points * shape.inputs * shape.outputs));
  winograd_4x4_weights(weights, shape, 0, shape.outputs, transformed.data());
  Floats results(static_cast<size_t>(shape.images * shape.height * shape.width * shape.outputs));
  winograd_4x4_forward(shape, maps.data(), transformed.data(), nullptr,
                       {.data = results.data(), .channels = shape.outputs}, 0,
                       winograd_4x4_tiles(shape));
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

TEST_F(Winograd4x4Kernels, CountTilesThatCoverTheMaps) {
  EXPECT_EQ(winograd_4x4_tiles(kShape), 2 * 2 * 3);
  EXPECT_EQ(winograd_4x4_tiles({.images = 3, .height = 4, .width = 8, .inputs = 16, .outputs = 16}),
            6);
}

// <g, conv(x, w)> is linear in each of x and w, so both gradients are known from it.
TEST_F(Winograd4x4Kernels, GoBackwardByTheTransposeOfForward) {
  const WinogradShape back = {.images = 2, .height = 6, .width = 9, .inputs = 32, .outputs = 16};
  const auto of_maps = convolved(back, gradients_, mirrored(channels_last(weights_, 16)));
  EXPECT_NEAR(product(of_maps, maps_), scale_, 1e-4 * std::abs(scale_));

  Floats transformed(static_cast<size_t>(kWinograd4x4Points * 16 * 32));
  winograd_4x4_weight_gradient(kShape, maps_.data(), gradients_.data(),
                               {.channels = 32,
                                .begin = 0,
                                .end = winograd_4x4_tiles(kShape),
                                .first_output = 0,
                                .last_output = 32},
                               transformed.data());
  Floats of_weights(weights_.size());
  winograd_4x4_untransformed(transformed.data(), 1, kShape, 0, 32,
                             {.data = of_weights.data(),
                              .output_step = 9 * 16,
                              .row_step = 3 * 16,
                              .column_step = 16,
                              .input_step = 1});
  EXPECT_NEAR(product(of_weights, weights_), scale_, 1e-4 * std::abs(scale_));
}

TEST_F(Winograd4x4Kernels, GiveEachTileTheSameBitsAloneAndAmongOthers) {
  const auto whole = convolved(kShape, maps_, channels_last(weights_, 16));
  Floats transformed(static_cast<size_t>(kWinograd4x4Points * 16 * 32));
  winograd_4x4_weights(channels_last(weights_, 16), kShape, 0, 16, transformed.data());
  winograd_4x4_weights(channels_last(weights_, 16), kShape, 16, 32, transformed.data());
  Floats parts(whole.size());
  for (int64_t tile = 0; tile < winograd_4x4_tiles(kShape); ++tile) {
    winograd_4x4_forward(kShape, maps_.data(), transformed.data(), nullptr,
                         {.data = parts.data(), .channels = 32}, tile, tile + 1);
  }
  EXPECT_EQ(parts, whole);
}

TEST_F(Winograd4x4Kernels, AddUpSharesOfTilesAndOutputs) {
  const auto tiles = winograd_4x4_tiles(kShape);
  constexpr int64_t kFloats = kWinograd4x4Points * 16 * 32;
  const auto gradient = [&](const std::vector<WinogradShare>& shares, int64_t parts) {
    Floats transformed(static_cast<size_t>(parts * kFloats));
    for (const auto& share : shares) {
      const auto part = share.begin > 0 ? 1 : 0;
      winograd_4x4_weight_gradient(kShape, maps_.data(), gradients_.data(), share,
                                   transformed.data() + part * kFloats);
    }
    Floats result(weights_.size());
    winograd_4x4_untransformed(transformed.data(), parts, kShape, 0, 32,
                               {.data = result.data(),
                                .output_step = 9 * 16,
                                .row_step = 3 * 16,
                                .column_step = 16,
                                .input_step = 1});
    return result;
  };
  const auto whole = gradient({{32, 0, tiles, 0, 32}}, 1);
  EXPECT_EQ(gradient({{32, 0, tiles, 0, 16}, {32, 0, tiles, 16, 32}}, 1), whole);
  const auto halves = gradient({{32, 0, 5, 0, 32}, {32, 5, tiles, 0, 32}}, 2);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(halves[i], whole[i], 1e-3);
}

}  // namespace kelvin::winograd_4x4_test
