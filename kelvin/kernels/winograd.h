#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace kelvin {

// What convolutions by Winograd's algorithm have in common, whatever their tiles and numbers are.

// Contiguous feature maps in channels-last: [images, height, width, channels].
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

// Threads and memory for a convolution: kernels have neither of their own.
struct WinogradWorkers {
  // Calls work(begin, end), in any order and at the same time, for ranges that together are
  // [0, count) and have `grain` places or more each where there are as many.
  using Loop = std::function<void(int64_t count, int64_t grain,
                                  const std::function<void(int64_t, int64_t)>& work)>;

  int64_t threads = 1;
  Loop loop;
  std::function<std::shared_ptr<void>(int64_t bytes)> memory;  // at multiples of 64 bytes

  template <class Number>
  std::shared_ptr<Number> memory_for(int64_t count) const {
    return std::static_pointer_cast<Number>(memory(count * static_cast<int64_t>(sizeof(Number))));
  }

  // Calls work(begin, end) for ranges of outputs that are multiples of 16.
  template <class Work>
  void for_outputs(int64_t outputs, const Work& work) const {
    constexpr int64_t kOutputsOfAThread = 2 * kWinogradLanes;  // or more
    loop(outputs / kWinogradLanes, kOutputsOfAThread / kWinogradLanes,
         [&](int64_t begin, int64_t end) { work(begin * kWinogradLanes, end * kWinogradLanes); });
  }
};

}  // namespace kelvin
