#include "kelvin/math/winograd_2x2.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "kelvin/math/parallel_for.h"
#include "kelvin/math/tensor_numbers.h"
#include "kelvin/math/winograd_2x2_kernels.h"
#include "kelvin/math/winograd_tensors.h"

namespace kelvin {
namespace {

// Transformed tiles of inputs and gradients of outputs, room for `count` shares of them.
class ShareBuffers {
 public:
  ShareBuffers(const WinogradShape& shape, const torch::Tensor& maps, int64_t count)
      : inputs_(torch::empty({count, winograd_2x2_share_size(shape, shape.inputs)},
                             maps.options().memory_format(torch::MemoryFormat::Contiguous))),
        gradients_(torch::empty({count, winograd_2x2_share_size(shape, shape.outputs)},
                                inputs_.options())) {}

  WinogradShareMaps at(int64_t index) const {
    return {.inputs = numbers(inputs_) + index * inputs_.stride(0),
            .gradients = numbers(gradients_) + index * gradients_.stride(0)};
  }

 private:
  torch::Tensor inputs_;
  torch::Tensor gradients_;
};

struct GradientInput {
  const WinogradShape& shape;
  const torch::Tensor& maps;
  const torch::Tensor& gradients;

  void transform(int64_t first, int64_t begin, int64_t end, const WinogradShareMaps& share) const {
    winograd_2x2_share(shape, numbers(maps), numbers(gradients), first, begin, end, share);
  }
};

// Every core has rows of its own: `sums` are of `parts`.
void sum_apart(const GradientInput& input, int64_t parts, float* sums) {
  const auto& shape = input.shape;
  const auto rows = winograd_2x2_rows(shape);
  const auto size = winograd_2x2_rows_of_a_share(shape);
  const ShareBuffers buffers(shape, input.maps, parts);
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (auto part = begin; part < end; ++part) {
      const auto share = buffers.at(part);
      auto* sum = sums + part * kWinograd2x2Points * shape.inputs * shape.outputs;
      const auto start = part * rows / parts;
      const auto stop = (part + 1) * rows / parts;
      for (auto first = start; first < stop; first += size) {
        const auto last = std::min(first + size, stop);
        input.transform(first, first, last, share);
        winograd_2x2_weight_gradient(shape, share, last - first, first == start, 0,
                                     kWinograd2x2Points, sum);
      }
    }
  });
}

// All cores transform the rows of a share, then each multiplies at points of its own.
void sum_together(const GradientInput& input, float* sums) {
  const auto& shape = input.shape;
  const auto rows = winograd_2x2_rows(shape);
  const auto size = winograd_2x2_rows_of_a_share(shape);
  const ShareBuffers buffers(shape, input.maps, 1);
  const auto share = buffers.at(0);
  for (int64_t first = 0; first < rows; first += size) {
    const auto last = std::min(first + size, rows);
    parallel_for(first, last, 1,
                 [&](int64_t begin, int64_t end) { input.transform(first, begin, end, share); });
    parallel_for(0, kWinograd2x2Points, 1, [&](int64_t begin, int64_t end) {
      winograd_2x2_weight_gradient(shape, share, last - first, first == 0, begin, end, sums);
    });
  }
}

}  // namespace

torch::Tensor winograd_2x2(const WinogradShape& shape, const torch::Tensor& maps,
                           const WinogradWeights<const float>& weights, const float* bias) {
  const auto transformed =
      torch::empty({kWinograd2x2Points * shape.inputs * shape.outputs}, maps.options());
  for_outputs(shape.outputs, [&](int64_t begin, int64_t end) {
    winograd_2x2_weights(weights, shape, begin, end, numbers(transformed));
  });
  auto results = empty_results(shape, maps);
  parallel_for(0, winograd_2x2_rows(shape), 1, [&](int64_t begin, int64_t end) {
    winograd_2x2_forward(shape, numbers(maps), numbers(transformed), bias, numbers(results), begin,
                         end);
  });
  return results;
}

torch::Tensor winograd_2x2_gradient_of(const torch::Tensor& weight, const WinogradShape& shape,
                                       const torch::Tensor& maps, const torch::Tensor& gradients) {
  const GradientInput input{.shape = shape, .maps = maps, .gradients = gradients};
  const auto parts = winograd_2x2_is_narrow(shape)
                         ? std::min<int64_t>(at::get_num_threads(), winograd_2x2_rows(shape))
                         : 1;
  const auto sums = torch::empty({parts, kWinograd2x2Points, shape.inputs, shape.outputs},
                                 weight.options().memory_format(torch::MemoryFormat::Contiguous));
  if (parts > 1) {
    sum_apart(input, parts, sums.data_ptr<float>());
  } else {
    sum_together(input, sums.data_ptr<float>());
  }
  auto gradient = torch::empty_like(weight);
  for_outputs(shape.outputs, [&](int64_t begin, int64_t end) {
    winograd_2x2_untransformed(sums.data_ptr<float>(), parts, shape, begin, end,
                               layout_of<float>(gradient));
  });
  return gradient;
}

}  // namespace kelvin
