#include "kelvin/ops/convolution_3x3.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "kelvin/core/check.h"
#include "kelvin/kernels/winograd_2x2.h"
#include "kelvin/kernels/winograd_4x4.h"
#include "kelvin/ops/libtorch.h"
#include "kelvin/ops/parallel_for.h"
#include "kelvin/ops/reference_ops.h"
#include "kelvin/ops/tensors.h"

namespace kelvin {
namespace {

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;

WinogradShape shape_of(const torch::Tensor& maps, int64_t outputs) {
  return {.images = maps.size(0),
          .height = maps.size(2),
          .width = maps.size(3),
          .inputs = maps.size(1),
          .outputs = outputs};
}

bool is_bf16(const torch::Tensor& maps) { return maps.scalar_type() == torch::kBFloat16; }

// Threads are LibTorch's, and so is the memory.
WinogradWorkers torch_workers() {
  return {.threads = at::get_num_threads(),
          .loop =
              [](int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& work) {
                parallel_for(0, count, grain, work);
              },
          .memory =
              [](int64_t bytes) {
                const auto memory =
                    std::make_shared<torch::Tensor>(torch::empty({bytes}, torch::kUInt8));
                return std::shared_ptr<void>(memory, memory->data_ptr());
              }};
}

}  // namespace

torch::Tensor winograd_forward(const torch::Tensor& maps, int64_t outputs,
                               const WinogradWeights<const float>& weights, const float* bias) {
  const auto shape = shape_of(maps, outputs);
  auto results = torch::empty({shape.images, shape.outputs, shape.height, shape.width},
                              maps.options().memory_format(kChannelsLast));
  if (is_bf16(maps)) {
    winograd_2x2_forward(shape, numbers(maps), weights, bias, numbers(results), torch_workers());
  } else {
    winograd_4x4_forward(shape, maps.data_ptr<float>(), weights, bias, results.data_ptr<float>(),
                         torch_workers());
  }
  return results;
}

torch::Tensor winograd_weight_gradient(const torch::Tensor& weight, const torch::Tensor& maps,
                                       const torch::Tensor& gradients) {
  const auto shape = shape_of(maps, weight.size(0));
  auto gradient = torch::empty_like(weight);
  const auto layout = layout_of<float>(gradient);
  if (is_bf16(maps)) {
    winograd_2x2_weight_gradient(shape, numbers(maps), numbers(gradients), layout, torch_workers());
  } else {
    winograd_4x4_weight_gradient(shape, maps.data_ptr<float>(), gradients.data_ptr<float>(), layout,
                                 torch_workers());
  }
  return gradient;
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kHasConvolutionBias = "has_bias";

class Convolution3x3 : public torch::autograd::Function<Convolution3x3> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& input,
                               const torch::Tensor& weight, const OptionalTensor& bias) {
    const auto maps = input.contiguous(kChannelsLast);
    context->save_for_backward({maps, weight});
    context->saved_data[kHasConvolutionBias] = bias.has_value();
    return winograd_forward(maps, weight.size(0), layout_of<const float>(weight),
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
      wanted[0] = winograd_forward(gradients, maps.size(1),
                                   mirrored(layout_of<const float>(weight)), nullptr);
    }
    if (context->needs_input_grad(1)) {
      wanted[1] = winograd_weight_gradient(weight, maps, gradients);
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
