#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "kelvin/kernels/winograd_4x4.h"
#include "tests/support/winograd.h"

// Gradients are compared with LibTorch's in convolution_3x3_test.cpp; here is what holds without
// them.

namespace kelvin::winograd_4x4_gradient_test {

class Winograd4x4Gradient : public Winograd4x4OnArrays {
 protected:
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
                                   channels_last(result.data(), shape.inputs), workers);
      return result;
    }

    WinogradShape shape;
    Floats maps;
    Floats gradients;
    Floats weights;
  };
};

// <g, conv(x, w)> is linear in w, so the gradient is known from it.
TEST_F(Winograd4x4Gradient, IsTheTransposeOfForward) {
  const Drawn example(kShape);
  Floats results(example.gradients.size());
  winograd_4x4_forward(kShape, example.maps.data(), channels_last(example.weights.data(), 16),
                       nullptr, results.data(), whole_ranges());
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
