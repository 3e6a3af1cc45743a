#pragma once

#include <cstdint>

namespace kelvin {

// What convolutions by Winograd's algorithm work on, whatever their tiles and numbers are.

// Maps without gaps in channels-last: [images, height, width, channels].
struct WinogradShape {
  int64_t images = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t inputs = 0;   // channels, a multiple of kWinogradLanes
  int64_t outputs = 0;  // likewise
};

constexpr int64_t kWinogradLanes = 16;
// Weights or their gradient, [outputs, 3, 3, inputs], with so many floats from one to the next.
template <class Float>
struct WinogradWeights {
  Float* data = nullptr;
  int64_t output_step = 0;
  int64_t row_step = 0;
  int64_t column_step = 0;
  int64_t input_step = 0;
};

// The same weights as the convolution has them that takes gradients of outputs to gradients of
// inputs: turned around, with inputs for outputs.
inline WinogradWeights<const float> mirrored(const WinogradWeights<const float>& weights) {
  return {.data = weights.data + 2 * weights.row_step + 2 * weights.column_step,
          .output_step = weights.input_step,
          .row_step = -weights.row_step,
          .column_step = -weights.column_step,
          .input_step = weights.output_step};
}

}  // namespace kelvin
