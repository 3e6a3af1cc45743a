#include "kelvin/ops/convolution_3x3.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/kernels/winograd_2x2.h"
#include "kelvin/kernels/winograd_4x4.h"
#include "kelvin/ops/libtorch.h"
#include "kelvin/ops/parallel_for.h"
#include "kelvin/ops/reference_ops.h"
#include "kelvin/ops/tensors.h"

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

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;
constexpr auto kHasConvolutionBias = "has_bias";

WinogradShape shape_of(const torch::Tensor& maps, int64_t outputs) {
  return {.images = maps.size(0),
          .height = maps.size(2),
          .width = maps.size(3),
          .inputs = maps.size(1),
          .outputs = outputs};
}

bool is_bf16(const torch::Tensor& maps) { return maps.scalar_type() == torch::kBFloat16; }

torch::Tensor convolved(const torch::Tensor& maps, int64_t outputs,
                        const WinogradWeights<const float>& weights, const float* bias) {
  const auto shape = shape_of(maps, outputs);
  return is_bf16(maps) ? winograd_2x2(shape, maps, weights, bias)
                       : winograd_4x4(shape, maps, weights, bias);
}

torch::Tensor weight_gradient(const torch::Tensor& weight, const torch::Tensor& maps,
                              const torch::Tensor& gradients) {
  const auto shape = shape_of(maps, weight.size(0));
  return is_bf16(maps) ? winograd_2x2_gradient_of(weight, shape, maps, gradients)
                       : winograd_4x4_gradient_of(weight, shape, maps, gradients);
}

class Convolution3x3 : public torch::autograd::Function<Convolution3x3> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& input,
                               const torch::Tensor& weight, const OptionalTensor& bias) {
    const auto maps = input.contiguous(kChannelsLast);
    context->save_for_backward({maps, weight});
    context->saved_data[kHasConvolutionBias] = bias.has_value();
    return convolved(maps, weight.size(0), layout_of<const float>(weight),
                     bias ? bias->data_ptr<float>() : nullptr);
  }

  static variable_list backward(AutogradContext* context, const variable_list& results) {
    check_first_derivative("convolution_3x3");
    const auto saved = context->get_saved_variables();
    const auto& maps = saved.at(0);
    const auto& weight = saved.at(1);
    const auto gradients = results.at(0).to(maps.scalar_type()).contiguous(kChannelsLast);
    variable_list wanted(3);
    if (context->needs_input_grad(0)) {
      wanted[0] =
          convolved(gradients, maps.size(1), mirrored(layout_of<const float>(weight)), nullptr);
    }
    if (context->needs_input_grad(1)) {
      wanted[1] = weight_gradient(weight, maps, gradients);
    }
    if (context->saved_data[kHasConvolutionBias].toBool() && context->needs_input_grad(2)) {
      wanted[2] = gradients.sum({0, 2, 3}, false, torch::kFloat32);
    }
    return wanted;
  }
};

// Maps as large as a tile are the smallest.
bool suits_maps(const torch::Tensor& input) {
  if (!input.is_cpu() || input.dim() != 4 || input.size(0) == 0) return false;
  const auto side = std::min(input.size(2), input.size(3));
  if (is_bf16(input)) return has_winograd_2x2() && side >= 2;
  return input.scalar_type() == torch::kFloat32 && has_winograd_4x4() && side >= 4;
}

}  // namespace

bool suits_convolution_3x3(const torch::Tensor& input, const torch::Tensor& weight) {
  return suits_maps(input) && weight.is_cpu() && weight.scalar_type() == torch::kFloat32 &&
         weight.dim() == 4 && weight.size(2) == 3 && weight.size(3) == 3 &&
         weight.size(0) % kWinogradLanes == 0 && weight.size(1) % kWinogradLanes == 0 &&
         input.size(1) == weight.size(1);
}

torch::Tensor convolution_3x3(const torch::Tensor& input, const torch::Tensor& weight,
                              const torch::Tensor& bias) {
  check(suits_convolution_3x3(input, weight), "convolution_3x3: needs ", kWinogradLanes,
        " channels or multiples of it, 3x3 weights in float32 and maps of at least 4x4 in float32 "
        "or 2x2 in bfloat16, got input ",
        input.sizes(), " and weight ", weight.sizes());
  return Convolution3x3::apply(input, weight, if_defined(bias));
}

}  // namespace kelvin
