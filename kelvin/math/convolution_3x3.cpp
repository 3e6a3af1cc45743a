#include "kelvin/math/convolution_3x3.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/math/plain_path.h"
#include "kelvin/math/winograd_kernels.h"

namespace kelvin {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;
constexpr auto kHasBias = "has_bias";

// Weights are dealt to threads by so many outputs or more.
constexpr int64_t kOutputsOfAThread = 2 * kWinogradLanes;

template <class Float>
WinogradWeights<Float> layout_of(const torch::Tensor& weight) {
  return {.data = weight.data_ptr<float>(),
          .output_step = weight.stride(0),
          .row_step = weight.stride(2),
          .column_step = weight.stride(3),
          .input_step = weight.stride(1)};
}

WinogradShape shape_of(const torch::Tensor& maps, int64_t outputs) {
  return {.images = maps.size(0),
          .height = maps.size(2),
          .width = maps.size(3),
          .inputs = maps.size(1),
          .outputs = outputs};
}

// Calls `work` with ranges of outputs that are multiples of 16.
template <class Work>
void for_outputs(int64_t outputs, const Work& work) {
  at::parallel_for(
      0, outputs / kWinogradLanes, kOutputsOfAThread / kWinogradLanes,
      [&](int64_t begin, int64_t end) { work(begin * kWinogradLanes, end * kWinogradLanes); });
}

torch::Tensor convolved(const WinogradShape& shape, const torch::Tensor& maps,
                        const WinogradWeights<const float>& weights, const float* bias) {
  const auto transformed =
      torch::empty({kWinogradPoints * shape.inputs * shape.outputs}, maps.options());
  for_outputs(shape.outputs, [&](int64_t begin, int64_t end) {
    winograd_weights(weights, shape, begin, end, transformed.data_ptr<float>());
  });
  auto results = torch::empty({shape.images, shape.outputs, shape.height, shape.width},
                              maps.options().memory_format(kChannelsLast));
  at::parallel_for(0, winograd_tiles(shape), 1, [&](int64_t begin, int64_t end) {
    winograd_forward(shape, maps.data_ptr<float>(), transformed.data_ptr<float>(), bias,
                     results.data_ptr<float>(), begin, end);
  });
  return results;
}

// Each thread has outputs of its own where they are enough, otherwise images of its own and a sum.
torch::Tensor weight_gradient(const WinogradShape& shape, const torch::Tensor& maps,
                              const torch::Tensor& gradients, const torch::Tensor& weight) {
  const auto tiles = winograd_tiles(shape);
  const int64_t threads = at::get_num_threads();
  const auto floats = kWinogradPoints * shape.inputs * shape.outputs;
  const bool splits_outputs = shape.outputs >= threads * 4 * kWinogradLanes;
  const auto parts = splits_outputs ? 1 : std::min(threads, tiles);
  const auto transformed = torch::empty({parts * floats}, maps.options());
  const auto* inputs = maps.data_ptr<float>();
  const auto* outputs = gradients.data_ptr<float>();
  auto* sums = transformed.data_ptr<float>();
  if (splits_outputs) {
    for_outputs(shape.outputs, [&](int64_t begin, int64_t end) {
      winograd_weight_gradient(
          shape, inputs, outputs,
          {.begin = 0, .end = tiles, .first_output = begin, .last_output = end}, sums);
    });
  } else {
    at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      for (auto part = begin; part < end; ++part) {
        winograd_weight_gradient(shape, inputs, outputs,
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
    winograd_untransformed(sums, parts, shape, begin, end, layout_of<float>(gradient));
  });
  return gradient;
}

class Convolution3x3 : public torch::autograd::Function<Convolution3x3> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& input,
                               const torch::Tensor& weight,
                               const c10::optional<torch::Tensor>& bias) {
    const auto maps = input.contiguous(kChannelsLast);
    context->save_for_backward({maps, weight});
    context->saved_data[kHasBias] = bias.has_value();
    return convolved(shape_of(maps, weight.size(0)), maps, layout_of<const float>(weight),
                     bias ? bias->data_ptr<float>() : nullptr);
  }

  static variable_list backward(AutogradContext* context, const variable_list& results) {
    check_first_derivative("convolution_3x3");
    const auto saved = context->get_saved_variables();
    const auto& maps = saved.at(0);
    const auto& weight = saved.at(1);
    const auto gradients = results.at(0).contiguous(kChannelsLast);
    variable_list wanted(3);
    if (context->needs_input_grad(0)) {
      wanted[0] = convolved(shape_of(gradients, maps.size(1)), gradients,
                            mirrored(layout_of<const float>(weight)), nullptr);
    }
    if (context->needs_input_grad(1)) {
      wanted[1] = weight_gradient(shape_of(maps, weight.size(0)), maps, gradients, weight);
    }
    if (context->saved_data[kHasBias].toBool() && context->needs_input_grad(2)) {
      wanted[2] = gradients.sum({0, 2, 3});
    }
    return wanted;
  }
};

bool is_float_on_cpu(const torch::Tensor& tensor) {
  return tensor.is_cpu() && tensor.scalar_type() == torch::kFloat32;
}

}  // namespace

bool suits_convolution_3x3(const torch::Tensor& input, const torch::Tensor& weight) {
  constexpr int64_t kSmallestMaps = 4;
  return has_winograd() && is_float_on_cpu(input) && is_float_on_cpu(weight) && input.dim() == 4 &&
         weight.dim() == 4 && weight.size(2) == 3 && weight.size(3) == 3 &&
         weight.size(0) % kWinogradLanes == 0 && weight.size(1) % kWinogradLanes == 0 &&
         input.size(1) == weight.size(1) && input.size(0) > 0 && input.size(2) >= kSmallestMaps &&
         input.size(3) >= kSmallestMaps;
}

torch::Tensor convolution_3x3(const torch::Tensor& input, const torch::Tensor& weight,
                              const torch::Tensor& bias) {
  check(suits_convolution_3x3(input, weight), "convolution_3x3: needs ", kWinogradLanes,
        " channels or multiples of it, 3x3 weights and maps of at least 4x4 in float32, got input ",
        input.sizes(), " and weight ", weight.sizes());
  return Convolution3x3::apply(input, weight,
                               bias.defined() ? c10::optional<torch::Tensor>(bias) : c10::nullopt);
}

}  // namespace kelvin
