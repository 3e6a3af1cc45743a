#include "kelvin/math/winograd_4x4.h"

#include <algorithm>

#include "kelvin/math/winograd_4x4_kernels.h"
#include "kelvin/math/winograd_tensors.h"

namespace kelvin {

torch::Tensor winograd_4x4(const WinogradShape& shape, const torch::Tensor& maps,
                           const WinogradWeights<const float>& weights, const float* bias) {
  const auto transformed =
      torch::empty({kWinograd4x4Points * shape.inputs * shape.outputs}, maps.options());
  for_outputs(shape.outputs, [&](int64_t begin, int64_t end) {
    winograd_4x4_weights(weights, shape, begin, end, transformed.data_ptr<float>());
  });
  auto results = empty_results(shape, maps);
  at::parallel_for(0, winograd_4x4_tiles(shape), 1, [&](int64_t begin, int64_t end) {
    winograd_4x4_forward(shape, maps.data_ptr<float>(), transformed.data_ptr<float>(), bias,
                         results.data_ptr<float>(), begin, end);
  });
  return results;
}

// Each thread has outputs of its own where they are enough, otherwise images of its own and a sum.
torch::Tensor winograd_4x4_gradient_of(const torch::Tensor& weight, const WinogradShape& shape,
                                       const torch::Tensor& maps, const torch::Tensor& gradients) {
  const auto tiles = winograd_4x4_tiles(shape);
  const int64_t threads = at::get_num_threads();
  const auto floats = kWinograd4x4Points * shape.inputs * shape.outputs;
  const bool splits_outputs = shape.outputs >= threads * 4 * kWinogradLanes;
  const auto parts = splits_outputs ? 1 : std::min(threads, tiles);
  const auto transformed = torch::empty({parts * floats}, maps.options());
  const auto* inputs = maps.data_ptr<float>();
  const auto* outputs = gradients.data_ptr<float>();
  auto* sums = transformed.data_ptr<float>();
  if (splits_outputs) {
    for_outputs(shape.outputs, [&](int64_t begin, int64_t end) {
      winograd_4x4_weight_gradient(
          shape, inputs, outputs,
          {.begin = 0, .end = tiles, .first_output = begin, .last_output = end}, sums);
    });
  } else {
    at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      for (auto part = begin; part < end; ++part) {
        winograd_4x4_weight_gradient(shape, inputs, outputs,
                                     {.begin = part * tiles / parts,
                                      .end = (part + 1) * tiles / parts,
                                      .first_output = 0,
                                      .last_output = shape.outputs},
                                     sums + part * floats);
      }
    });
  }
  auto gradient = torch::empty_like(weight);
  for_outputs(shape.outputs, [&](int64_t begin, int64_t end) {
    winograd_4x4_untransformed(sums, parts, shape, begin, end, layout_of<float>(gradient));
  });
  return gradient;
}

}  // namespace kelvin
