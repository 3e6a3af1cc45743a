#include "kelvin/math/convolution_3x3.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/math/plain_path.h"
#include "kelvin/math/winograd_2x2.h"
#include "kelvin/math/winograd_2x2_kernels.h"
#include "kelvin/math/winograd_4x4.h"
#include "kelvin/math/winograd_4x4_kernels.h"
#include "kelvin/math/winograd_tensors.h"

namespace kelvin {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;
constexpr auto kHasBias = "has_bias";

WinogradShape shape_of(const torch::Tensor& maps, int64_t outputs) {
  return {.images = maps.size(0),
          .height = maps.size(2),
          .width = maps.size(3),
          .inputs = maps.size(1),
          .outputs = outputs};
}

bool is_brain(const torch::Tensor& maps) { return maps.scalar_type() == torch::kBFloat16; }

torch::Tensor convolved(const torch::Tensor& maps, int64_t outputs,
                        const WinogradWeights<const float>& weights, const float* bias) {
  const auto shape = shape_of(maps, outputs);
  return is_brain(maps) ? winograd_2x2(shape, maps, weights, bias)
                        : winograd_4x4(shape, maps, weights, bias);
}

torch::Tensor weight_gradient(const torch::Tensor& weight, const torch::Tensor& maps,
                              const torch::Tensor& gradients) {
  const auto shape = shape_of(maps, weight.size(0));
  return is_brain(maps) ? winograd_2x2_gradient_of(weight, shape, maps, gradients)
                        : winograd_4x4_gradient_of(weight, shape, maps, gradients);
}

class Convolution3x3 : public torch::autograd::Function<Convolution3x3> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& input,
                               const torch::Tensor& weight,
                               const c10::optional<torch::Tensor>& bias) {
    const auto maps = input.contiguous(kChannelsLast);
    context->save_for_backward({maps, weight});
    context->saved_data[kHasBias] = bias.has_value();
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
    if (context->saved_data[kHasBias].toBool() && context->needs_input_grad(2)) {
      wanted[2] = gradients.sum({0, 2, 3}, false, torch::kFloat32);
    }
    return wanted;
  }
};

// Maps as large as a tile are the smallest.
bool suits_maps(const torch::Tensor& input) {
  if (!input.is_cpu() || input.dim() != 4 || input.size(0) == 0) return false;
  const auto side = std::min(input.size(2), input.size(3));
  if (is_brain(input)) return has_winograd_2x2() && side >= 2;
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
  return Convolution3x3::apply(input, weight,
                               bias.defined() ? c10::optional<torch::Tensor>(bias) : c10::nullopt);
}

}  // namespace kelvin
