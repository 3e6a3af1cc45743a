#include "kelvin/math/winograd_4x4.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "kelvin/math/parallel_for.h"
#include "kelvin/math/winograd_4x4_kernels.h"
#include "kelvin/math/winograd_tensors.h"

namespace kelvin {
namespace {

// Outputs that have their turn together.  Transformed weights are four times as many as weights:
// those of all outputs of a wide layer would be what a network needs most memory for.
int64_t outputs_at_a_time(const WinogradShape& shape) {
  constexpr int64_t kFloats = 2'500'000;
  const auto fitting = kFloats / (kWinograd4x4Points * shape.inputs) / kWinogradLanes;
  return std::max<int64_t>(fitting, 1) * kWinogradLanes;
}

// Calls work(first output, shape with a part of the outputs) for all of them.
template <class Work>
void for_parts_of_outputs(const WinogradShape& shape, const Work& work) {
  const auto most = outputs_at_a_time(shape);
  for (int64_t first = 0; first < shape.outputs; first += most) {
    auto part = shape;
    part.outputs = std::min(most, shape.outputs - first);
    work(first, part);
  }
}

template <class Float>
WinogradWeights<Float> from_output(WinogradWeights<Float> weights, int64_t first) {
  weights.data += first * weights.output_step;
  return weights;
}

// The gradient of the weights of all outputs of `shape`, which begin where `gradients` and
// `gradient` do.  Each thread has outputs of its own where they are enough, otherwise images of its
// own and a sum.
void sum_gradients(const WinogradShape& shape, const torch::Tensor& maps, const float* gradients,
                   int64_t channels, const WinogradWeights<float>& gradient) {
  const auto tiles = winograd_4x4_tiles(shape);
  const int64_t threads = at::get_num_threads();
  const auto floats = kWinograd4x4Points * shape.inputs * shape.outputs;
  const bool splits_outputs = shape.outputs >= threads * 4 * kWinogradLanes;
  const auto parts = splits_outputs ? 1 : std::min(threads, tiles);
  const auto transformed = torch::empty({parts * floats}, maps.options());
  const auto* inputs = maps.data_ptr<float>();
  auto* sums = transformed.data_ptr<float>();
  if (splits_outputs) {
    for_outputs(shape.outputs, [&](int64_t begin, int64_t end) {
      winograd_4x4_weight_gradient(shape, inputs, gradients,
                                   {.channels = channels,
                                    .begin = 0,
                                    .end = tiles,
                                    .first_output = begin,
                                    .last_output = end},
                                   sums);
    });
  } else {
    parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      for (auto part = begin; part < end; ++part) {
        winograd_4x4_weight_gradient(shape, inputs, gradients,
                                     {.channels = channels,
                                      .begin = part * tiles / parts,
                                      .end = (part + 1) * tiles / parts,
                                      .first_output = 0,
                                      .last_output = shape.outputs},
                                     sums + part * floats);
      }
    });
  }
  for_outputs(shape.outputs, [&](int64_t begin, int64_t end) {
    winograd_4x4_untransformed(sums, parts, shape, begin, end, gradient);
  });
}

}  // namespace

torch::Tensor winograd_4x4(const WinogradShape& shape, const torch::Tensor& maps,
                           const WinogradWeights<const float>& weights, const float* bias) {
  auto results = empty_results(shape, maps);
  for_parts_of_outputs(shape, [&](int64_t first, const WinogradShape& part) {
    const auto transformed =
        torch::empty({kWinograd4x4Points * part.inputs * part.outputs}, maps.options());
    for_outputs(part.outputs, [&](int64_t begin, int64_t end) {
      winograd_4x4_weights(from_output(weights, first), part, begin, end,
                           transformed.data_ptr<float>());
    });
    parallel_for(0, winograd_4x4_tiles(part), 1, [&](int64_t begin, int64_t end) {
      winograd_4x4_forward(part, maps.data_ptr<float>(), transformed.data_ptr<float>(),
                           bias != nullptr ? bias + first : nullptr,
                           {.data = results.data_ptr<float>() + first, .channels = shape.outputs},
                           begin, end);
    });
  });
  return results;
}

torch::Tensor winograd_4x4_gradient_of(const torch::Tensor& weight, const WinogradShape& shape,
                                       const torch::Tensor& maps, const torch::Tensor& gradients) {
  auto gradient = torch::empty_like(weight);
  for_parts_of_outputs(shape, [&](int64_t first, const WinogradShape& part) {
    sum_gradients(part, maps, gradients.data_ptr<float>() + first, shape.outputs,
                  from_output(layout_of<float>(gradient), first));
  });
  return gradient;
}

}  // namespace kelvin
