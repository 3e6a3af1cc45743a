#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "kelvin/kernels/winograd_4x4.h"
#include "tests/support/winograd.h"

// Gradients are compared with LibTorch's in convolution_3x3_test.cpp; here is what holds without
// them.

namespace kelvin::winograd_4x4_gradient_test {

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

// Random feature maps and gradients of a shape, and weights.
struct Drawn {
  explicit Drawn(const WinogradShape& of)
      : shape(of),
        maps(drawn(of.images * of.height * of.width * of.inputs, 1)),
        gradients(drawn(of.images * of.height * of.width * of.outputs, 2)),
        weights(drawn(of.outputs * 9 * of.inputs, 3)) {}

  Floats gradient(const WinogradWorkers& workers) const {
    Floats result(weights.size());
    winograd_4x4_weight_gradient(shape, maps.data(), gradients.data(),
                                 {.data = result.data(),
                                  .output_step = 9 * shape.inputs,
                                  .row_step = 3 * shape.inputs,
                                  .column_step = shape.inputs,
                                  .input_step = 1},
                                 workers);
    return result;
  }

  WinogradShape shape;
  Floats maps;
  Floats gradients;
  Floats weights;
};

const WinogradShape kShape = {.images = 2, .height = 6, .width = 9, .inputs = 16, .outputs = 32};

class Winograd4x4Gradient : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_winograd_4x4()) GTEST_SKIP() << "no AVX2";
  }
};

// <g, conv(x, w)> is linear in w, so the gradient is known from it.
TEST_F(Winograd4x4Gradient, IsTheTransposeOfForward) {
  const Drawn example(kShape);
  Floats results(example.gradients.size());
  winograd_4x4_forward(kShape, example.maps.data(), channels_last(example.weights, 16), nullptr,
                       results.data(), whole_ranges());
  const auto scale = product(example.gradients, results);
  EXPECT_NEAR(product(example.gradient(whole_ranges()), example.weights), scale,
              1e-4 * std::abs(scale));
}

TEST_F(Winograd4x4Gradient, AddsUpPartsOfTiles) {
  const Drawn example(kShape);
  const auto whole = example.gradient(whole_ranges());
  const auto halves = example.gradient(single_places(2));
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(halves[i], whole[i], 1e-3);
}

// So many outputs that threads have some each.
TEST_F(Winograd4x4Gradient, HasTheSameBitsForPartsOfTheOutputs) {
  auto shape = kShape;
  shape.outputs = 64;
  const Drawn example(shape);
  EXPECT_EQ(example.gradient(single_places()), example.gradient(whole_ranges()));
}

}  // namespace kelvin::winograd_4x4_gradient_test
