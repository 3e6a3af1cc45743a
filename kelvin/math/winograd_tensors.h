#pragma once

#include <torch/types.h>

#include "kelvin/math/parallel_for.h"
#include "kelvin/math/winograd_maps.h"

namespace kelvin {

template <class Float>
WinogradWeights<Float> layout_of(const torch::Tensor& weight) {
  return {.data = weight.data_ptr<float>(),
          .output_step = weight.stride(0),
          .row_step = weight.stride(2),
          .column_step = weight.stride(3),
          .input_step = weight.stride(1)};
}

// Calls work(begin, end) on all cores with ranges of outputs that are multiples of 16.
template <class Work>
void for_outputs(int64_t outputs, const Work& work) {
  constexpr int64_t kOutputsOfAThread = 2 * kWinogradLanes;  // or more
  parallel_for(
      0, outputs / kWinogradLanes, kOutputsOfAThread / kWinogradLanes,
      [&](int64_t begin, int64_t end) { work(begin * kWinogradLanes, end * kWinogradLanes); });
}

// Maps for the results of a convolution of `maps`.
inline torch::Tensor empty_results(const WinogradShape& shape, const torch::Tensor& maps) {
  return torch::empty({shape.images, shape.outputs, shape.height, shape.width},
                      maps.options().memory_format(torch::MemoryFormat::ChannelsLast));
}

}  // namespace kelvin
