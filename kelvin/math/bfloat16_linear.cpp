#include "kelvin/math/bfloat16_linear.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/math/brain_linear_kernels.h"
#include "kelvin/math/plain_path.h"

namespace kelvin {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kHasBias = "has_bias";

BrainFloat* numbers(const torch::Tensor& tensor) {
  return static_cast<BrainFloat*>(tensor.data_ptr());
}

// Calls work(begin, end) on all cores with ranges of columns that are multiples of 16.
template <class Work>
void for_columns(int64_t columns, const Work& work) {
  constexpr int64_t kLanes = 16;
  at::parallel_for(0, columns / kLanes, 1,
                   [&](int64_t begin, int64_t end) { work(begin * kLanes, end * kLanes); });
}

BrainLinearShape shape_of(const torch::Tensor& input, const torch::Tensor& weight) {
  return {
      .rows = input.numel() / weight.size(1), .inputs = weight.size(1), .outputs = weight.size(0)};
}

torch::Tensor with_columns(const torch::Tensor& tensor, int64_t columns) {
  auto sizes = tensor.sizes().vec();
  sizes.back() = columns;
  return torch::empty(sizes, tensor.options());
}

// Of the weights, and of the bias unless `bias` is null.
void sum_gradients(const BrainLinearShape& shape, const torch::Tensor& input,
                   const torch::Tensor& gradients, float* weight, float* bias) {
  const auto most = std::min(shape.rows, kBrainLinearRows);
  const auto input_pairs = torch::empty({brain_pairs_size(most, shape.inputs)}, input.options());
  const auto gradient_pairs =
      torch::empty({brain_pairs_size(most, shape.outputs)}, input.options());
  for (int64_t first = 0; first < shape.rows; first += most) {
    const auto last = std::min(first + most, shape.rows);
    for_columns(shape.inputs, [&](int64_t begin, int64_t end) {
      brain_pairs({.data = numbers(input), .columns = shape.inputs, .begin = first, .end = last},
                  begin, end, numbers(input_pairs), nullptr);
    });
    for_columns(shape.outputs, [&](int64_t begin, int64_t end) {
      brain_pairs(
          {.data = numbers(gradients), .columns = shape.outputs, .begin = first, .end = last},
          begin, end, numbers(gradient_pairs), bias);
      brain_linear_weights(shape, last - first, numbers(gradient_pairs), numbers(input_pairs),
                           first == 0, begin, end, weight);
    });
  }
}

class Bfloat16Linear : public torch::autograd::Function<Bfloat16Linear> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& input,
                               const torch::Tensor& weight,
                               const c10::optional<torch::Tensor>& bias) {
    context->save_for_backward({input, weight});
    context->saved_data[kHasBias] = bias.has_value();
    const auto shape = shape_of(input, weight);
    auto result = with_columns(input, shape.outputs);
    const auto* added = bias ? bias->data_ptr<float>() : nullptr;
    for_columns(shape.outputs, [&](int64_t begin, int64_t end) {
      brain_linear(shape, numbers(input), weight.data_ptr<float>(), added, begin, end,
                   numbers(result));
    });
    return result;
  }

  static variable_list backward(AutogradContext* context, const variable_list& results) {
    check_first_derivative("bfloat16_linear");
    const auto saved = context->get_saved_variables();
    const auto& input = saved.at(0);
    const auto& weight = saved.at(1);
    const auto gradients = results.at(0).to(torch::kBFloat16).contiguous();
    const auto shape = shape_of(input, weight);
    variable_list wanted(3);
    if (context->needs_input_grad(0)) {
      wanted[0] = torch::empty_like(input);
      for_columns(shape.inputs, [&](int64_t begin, int64_t end) {
        brain_linear_back(shape, numbers(gradients), weight.data_ptr<float>(), begin, end,
                          numbers(wanted[0]));
      });
    }
    const bool wants_bias = context->saved_data[kHasBias].toBool() && context->needs_input_grad(2);
    if (wants_bias) wanted[2] = torch::zeros({shape.outputs}, weight.options());
    if (context->needs_input_grad(1)) {
      wanted[1] = torch::empty_like(weight);
      sum_gradients(shape, input, gradients, wanted[1].data_ptr<float>(),
                    wants_bias ? wanted[2].data_ptr<float>() : nullptr);
    } else if (wants_bias) {
      wanted[2] = gradients.reshape({-1, shape.outputs}).sum(0, false, torch::kFloat32);
    }
    return wanted;
  }
};

}  // namespace

bool suits_bfloat16_linear(const torch::Tensor& input, const torch::Tensor& weight) {
  return has_brain_linear() && input.is_cpu() && weight.is_cpu() && weight.dim() == 2 &&
         weight.scalar_type() == torch::kFloat32 && weight.is_contiguous() &&
         (input.scalar_type() == torch::kFloat32 || input.scalar_type() == torch::kBFloat16) &&
         input.dim() >= 1 && input.numel() > 0 && input.size(-1) == weight.size(1) &&
         weight.size(0) % kBrainLinearUnit == 0 && weight.size(1) % kBrainLinearUnit == 0;
}

torch::Tensor bfloat16_linear(const torch::Tensor& input, const torch::Tensor& weight,
                              const torch::Tensor& bias) {
  check(suits_bfloat16_linear(input, weight), "bfloat16_linear: needs input [..., inputs] and ",
        "float32 weight [outputs, inputs], both multiples of ", kBrainLinearUnit, ", got ",
        input.sizes(), " and ", weight.sizes());
  return Bfloat16Linear::apply(input.to(torch::kBFloat16).contiguous(), weight,
                               bias.defined() ? c10::optional<torch::Tensor>(bias) : c10::nullopt);
}

}  // namespace kelvin
