#include "kelvin/math/parallel_linear.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <functional>

#include "kelvin/core/check.h"
#include "kelvin/math/independent_work.h"
#include "kelvin/math/plain_path.h"

namespace kelvin {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kHasBias = "has_bias";

// Calls work(begin, end) for as many parts of [0, size) as there are threads; parts are multiples
// of what kernels of products take at once.
void for_parts(int64_t size, const std::function<void(int64_t, int64_t)>& work) {
  constexpr int64_t kUnit = 32;
  const auto units = (size + kUnit - 1) / kUnit;
  const auto parts = std::min<int64_t>(at::get_num_threads(), units);
  for_each_independent(parts, [&](int64_t part) {
    const auto begin = part * units / parts * kUnit;
    const auto end = std::min((part + 1) * units / parts * kUnit, size);
    work(begin, end);
  });
}

// result = left right, by parts of its longer side.
void multiply(const torch::Tensor& left, const torch::Tensor& right, torch::Tensor result) {
  const bool splits_rows = left.size(0) >= right.size(1);
  for_parts(splits_rows ? left.size(0) : right.size(1), [&](int64_t begin, int64_t end) {
    auto part = result.slice(splits_rows ? 0 : 1, begin, end);
    if (splits_rows) {
      at::mm_out(part, left.slice(0, begin, end), right);
    } else {
      at::mm_out(part, left, right.slice(1, begin, end));
    }
  });
}

torch::Tensor product_of(const torch::Tensor& left, const torch::Tensor& right) {
  auto result = torch::empty({left.size(0), right.size(1)}, left.options());
  multiply(left, right, result);
  return result;
}

torch::Tensor as_rows(const torch::Tensor& tensor) { return tensor.reshape({-1, tensor.size(-1)}); }

class ParallelLinear : public torch::autograd::Function<ParallelLinear> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& input,
                               const torch::Tensor& weight,
                               const c10::optional<torch::Tensor>& bias) {
    const auto rows = as_rows(input);
    context->save_for_backward({input, weight});
    context->saved_data[kHasBias] = bias.has_value();
    auto result = product_of(rows, weight.t());
    if (bias) result.add_(*bias);
    auto sizes = input.sizes().vec();
    sizes.back() = weight.size(0);
    return result.view(sizes);
  }

  static variable_list backward(AutogradContext* context, const variable_list& results) {
    check_first_derivative("parallel_linear");
    const auto saved = context->get_saved_variables();
    const auto& input = saved.at(0);
    const auto& weight = saved.at(1);
    const auto gradients = as_rows(results.at(0));
    variable_list wanted(3);
    if (context->needs_input_grad(0)) wanted[0] = product_of(gradients, weight).view_as(input);
    if (context->needs_input_grad(1)) wanted[1] = product_of(gradients.t(), as_rows(input));
    if (context->saved_data[kHasBias].toBool() && context->needs_input_grad(2)) {
      wanted[2] = gradients.sum(0);
    }
    return wanted;
  }
};

}  // namespace

bool suits_parallel_linear(const torch::Tensor& input, const torch::Tensor& weight) {
  constexpr int64_t kLeastProducts = 1 << 20;
  return input.is_cpu() && weight.is_cpu() && input.is_floating_point() &&
         input.scalar_type() == weight.scalar_type() && input.dim() >= 2 && weight.dim() == 2 &&
         input.size(-1) == weight.size(1) && input.is_contiguous() && weight.is_contiguous() &&
         input.numel() * weight.size(0) >= kLeastProducts && at::get_num_threads() > 1 &&
         !at::in_parallel_region();
}

torch::Tensor parallel_linear(const torch::Tensor& input, const torch::Tensor& weight,
                              const torch::Tensor& bias) {
  check(input.dim() >= 2 && weight.dim() == 2 && input.size(-1) == weight.size(1),
        "parallel_linear: needs input [..., inputs] and weight [outputs, inputs], got ",
        input.sizes(), " and ", weight.sizes());
  return ParallelLinear::apply(input, weight,
                               bias.defined() ? c10::optional<torch::Tensor>(bias) : c10::nullopt);
}

}  // namespace kelvin
