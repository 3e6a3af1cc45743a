#pragma once

#include <torch/types.h>

#include "kelvin/kernels/winograd_maps.h"
#include "kelvin/ops/parallel_for.h"

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

// Convolutions of bfloat16 maps in channels-last by Winograd's F(2x2, 3x3), spread over all cores:
// 16 products for 4 outputs instead of 36.  Weights are float32, and so is their gradient.

// `bias` may be null.
torch::Tensor winograd_2x2(const WinogradShape& shape, const torch::Tensor& maps,
                           const WinogradWeights<const float>& weights, const float* bias);

// Of the shape and in the layout of `weight`.
torch::Tensor winograd_2x2_gradient_of(const torch::Tensor& weight, const WinogradShape& shape,
                                       const torch::Tensor& maps, const torch::Tensor& gradients);

// Convolutions of float32 maps in channels-last by Winograd's F(4x4, 3x3), spread over all cores:
// 36 products for 16 outputs instead of 144.  Three times as fast with many channels.

// `bias` may be null.
torch::Tensor winograd_4x4(const WinogradShape& shape, const torch::Tensor& maps,
                           const WinogradWeights<const float>& weights, const float* bias);

// Of the shape and in the layout of `weight`.
torch::Tensor winograd_4x4_gradient_of(const torch::Tensor& weight, const WinogradShape& shape,
                                       const torch::Tensor& maps, const torch::Tensor& gradients);

// Whether convolution_3x3 computes this convolution with stride 1 and padding 1: maps of at least
// 4x4 in float32 or 2x2 in bfloat16 on a CPU with the vectors they want, weights of 3x3 in float32,
// channels in multiples of 16.
bool suits_convolution_3x3(const torch::Tensor& input, const torch::Tensor& weight);

// torch::conv2d(input, weight, bias, 1, 1) in channels-last by Winograd's algorithm, see
// winograd_4x4.h and winograd_2x2.h.  `bias` may be undefined.  Bits depend on the number of
// threads.
torch::Tensor convolution_3x3(const torch::Tensor& input, const torch::Tensor& weight,
                              const torch::Tensor& bias = {});

}  // namespace kelvin
