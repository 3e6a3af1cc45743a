#include "kelvin/ops/linear.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <functional>

#include "kelvin/core/check.h"
#include "kelvin/kernels/bf16_linear.h"
#include "kelvin/ops/libtorch.h"
#include "kelvin/ops/parallel_for.h"
#include "kelvin/ops/reference_ops.h"
#include "kelvin/ops/tensors.h"

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
  parallel_for_tasks(parts, [&](int64_t part) {
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
                               const torch::Tensor& weight, const OptionalTensor& bias) {
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
  return ParallelLinear::apply(input, weight, if_defined(bias));
}

bool suits_blocked_linear(const torch::Tensor& input, const torch::Tensor& weight) {
  const auto type = input.scalar_type();
  return input.is_cpu() && weight.is_cpu() && type == weight.scalar_type() &&
         (type == torch::kFloat32 || type == torch::kFloat64) && input.dim() >= 2 &&
         weight.dim() == 2 && input.size(-1) == weight.size(1) && input.numel() > 0 &&
         weight.numel() > 0;
}

torch::Tensor blocked_linear(const torch::Tensor& input, const torch::Tensor& weight,
                             const torch::Tensor& bias) {
  check(suits_blocked_linear(input, weight),
        "blocked_linear: needs input [..., inputs] and weight [outputs, inputs] of one type on the "
        "CPU, got ",
        input.sizes(), " and ", weight.sizes());
  const torch::NoGradGuard no_gradients;
  // Smaller blocks copy weights for longer than they multiply.
  constexpr int64_t kProducts = 1 << 25;
  constexpr int64_t kLeastRows = 128;
  constexpr int64_t kLeastColumns = 512;
  const auto rows = as_rows(input);
  const auto outputs = weight.size(0);
  const auto most_rows = std::max(kLeastRows, kProducts / weight.numel());
  const auto down = (rows.size(0) + most_rows - 1) / most_rows;
  const auto across = std::max<int64_t>(1, outputs / kLeastColumns);
  auto result = torch::empty({rows.size(0), outputs}, rows.options());
  const auto range = [](const torch::Tensor& all, int64_t dim, int64_t part, int64_t parts) {
    return all.slice(dim, part * all.size(dim) / parts, (part + 1) * all.size(dim) / parts);
  };
  const SerialProducts serial;  // a single block, too
  parallel_for_tasks(down * across, [&](int64_t block) {
    auto part = range(range(result, 0, block / across, down), 1, block % across, across);
    at::mm_out(part, range(rows, 0, block / across, down),
               range(weight, 0, block % across, across).t());
  });
  if (bias.defined()) result.add_(bias);
  auto sizes = input.sizes().vec();
  sizes.back() = outputs;
  return result.view(sizes);
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Calls work(begin, end) on all cores with ranges of columns that are multiples of 16.
template <class Work>
void for_columns(int64_t columns, const Work& work) {
  constexpr int64_t kLanes = 16;
  parallel_for(0, columns / kLanes, 1,
               [&](int64_t begin, int64_t end) { work(begin * kLanes, end * kLanes); });
}

Bf16LinearShape shape_of(const torch::Tensor& input, const torch::Tensor& weight) {
  return {
      .rows = input.numel() / weight.size(1), .inputs = weight.size(1), .outputs = weight.size(0)};
}

torch::Tensor with_columns(const torch::Tensor& tensor, int64_t columns) {
  auto sizes = tensor.sizes().vec();
  sizes.back() = columns;
  return torch::empty(sizes, tensor.options());
}

// Whether every core gets rows of its own, which it finds near from one layer to the next, and
// all weights; otherwise it gets columns of results, so that few weights are packed by it.
bool splits_rows(const Bf16LinearShape& shape) {
  constexpr int64_t kRowsOfAThread = 1024;
  return shape.rows >= kRowsOfAThread * at::get_num_threads();
}

// Calls work(rows [begin, end), columns [first, last)) on all cores.
template <class Work>
void for_results(const Bf16LinearShape& shape, int64_t columns, const Work& work) {
  if (splits_rows(shape)) {
    parallel_for(0, shape.rows, 1,
                 [&](int64_t begin, int64_t end) { work(begin, end, 0, columns); });
  } else {
    for_columns(columns, [&](int64_t begin, int64_t end) { work(0, shape.rows, begin, end); });
  }
}

Bf16LinearShape with_rows(const Bf16LinearShape& shape, int64_t rows) {
  return {.rows = rows, .inputs = shape.inputs, .outputs = shape.outputs};
}

// Gradients of weights [outputs, inputs] and bias [outputs], which may be null.
struct Gradients {
  float* weight = nullptr;
  float* bias = nullptr;
};

// Pairs of rows of inputs and gradients of outputs for so many rows.
class PairBuffers {
 public:
  PairBuffers(const Bf16LinearShape& shape, int64_t rows, const torch::Tensor& like)
      : inputs_(torch::empty({bf16_pairs_size(rows, shape.inputs)}, like.options())),
        gradients_(torch::empty({bf16_pairs_size(rows, shape.outputs)}, like.options())) {}

  Bf16* inputs() const { return numbers(inputs_); }
  Bf16* gradients() const { return numbers(gradients_); }
  Bf16LinearPairs of(int64_t rows) const {
    return {.gradients = gradients(), .inputs = inputs(), .rows = rows};
  }

 private:
  torch::Tensor inputs_;
  torch::Tensor gradients_;
};

// What the rows [start, stop) add, on this core alone.
void sum_rows(const Bf16LinearShape& shape, const torch::Tensor& input,
              const torch::Tensor& gradients, int64_t start, int64_t stop, const Gradients& sums) {
  const PairBuffers pairs(shape, kBf16LinearRows, input);
  for (auto first = start; first < stop; first += kBf16LinearRows) {
    const auto last = std::min(first + kBf16LinearRows, stop);
    bf16_pairs({.data = numbers(input), .columns = shape.inputs, .begin = first, .end = last}, 0,
               shape.inputs, pairs.inputs(), nullptr);
    bf16_pairs({.data = numbers(gradients), .columns = shape.outputs, .begin = first, .end = last},
               0, shape.outputs, pairs.gradients(), sums.bias);
    bf16_linear_weights(shape, pairs.of(last - first), first == start, 0, shape.outputs,
                        sums.weight);
  }
}

// Every core sums rows of its own; sums of the first are those of all in the end.
void sum_apart(const Bf16LinearShape& shape, const torch::Tensor& input,
               const torch::Tensor& gradients, const torch::Tensor& weight,
               const torch::Tensor& bias) {
  const int64_t parts = at::get_num_threads();
  const auto weights = torch::empty({parts - 1, shape.outputs, shape.inputs}, weight.options());
  const auto biases = torch::zeros({parts - 1, shape.outputs}, weight.options());
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (auto part = begin; part < end; ++part) {
      const bool is_first = part == 0;
      const auto own_weight = is_first ? weight : weights[part - 1];
      const auto own_bias = is_first ? bias : biases[part - 1];
      sum_rows(shape, input, gradients, part * shape.rows / parts, (part + 1) * shape.rows / parts,
               {.weight = own_weight.data_ptr<float>(),
                .bias = bias.defined() ? own_bias.data_ptr<float>() : nullptr});
    }
  });
  for (int64_t part = 1; part < parts; ++part) {
    weight.add_(weights[part - 1]);
    if (bias.defined()) bias.add_(biases[part - 1]);
  }
}

// All cores pack pairs, then each has outputs of its own.
void sum_together(const Bf16LinearShape& shape, const torch::Tensor& input,
                  const torch::Tensor& gradients, const Gradients& sums) {
  const auto most = std::min(shape.rows, kBf16LinearRows);
  const PairBuffers pairs(shape, most, input);
  for (int64_t first = 0; first < shape.rows; first += most) {
    const auto last = std::min(first + most, shape.rows);
    for_columns(shape.inputs, [&](int64_t begin, int64_t end) {
      bf16_pairs({.data = numbers(input), .columns = shape.inputs, .begin = first, .end = last},
                 begin, end, pairs.inputs(), nullptr);
    });
    for_columns(shape.outputs, [&](int64_t begin, int64_t end) {
      bf16_pairs(
          {.data = numbers(gradients), .columns = shape.outputs, .begin = first, .end = last},
          begin, end, pairs.gradients(), sums.bias);
      bf16_linear_weights(shape, pairs.of(last - first), first == 0, begin, end, sums.weight);
    });
  }
}

// Whether cores have rows of their own and there is room for as many gradients.
bool sums_apart(const Bf16LinearShape& shape) {
  constexpr int64_t kFloats = 16 << 20;
  return splits_rows(shape) &&
         (at::get_num_threads() - 1) * shape.outputs * shape.inputs <= kFloats;
}

void sum_gradients(const Bf16LinearShape& shape, const torch::Tensor& input,
                   const torch::Tensor& gradients, const torch::Tensor& weight,
                   const torch::Tensor& bias) {
  if (sums_apart(shape)) {
    sum_apart(shape, input, gradients, weight, bias);
  } else {
    sum_together(shape, input, gradients,
                 {.weight = weight.data_ptr<float>(),
                  .bias = bias.defined() ? bias.data_ptr<float>() : nullptr});
  }
}

class Bfloat16Linear : public torch::autograd::Function<Bfloat16Linear> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& input,
                               const torch::Tensor& weight, const OptionalTensor& bias) {
    context->save_for_backward({input, weight});
    context->saved_data[kHasBias] = bias.has_value();
    const auto shape = shape_of(input, weight);
    auto result = with_columns(input, shape.outputs);
    const auto* added = bias ? bias->data_ptr<float>() : nullptr;
    for_results(shape, shape.outputs, [&](int64_t begin, int64_t end, int64_t first, int64_t last) {
      bf16_linear(with_rows(shape, end - begin), numbers(input) + begin * shape.inputs,
                  weight.data_ptr<float>(), added, first, last,
                  numbers(result) + begin * shape.outputs);
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
      for_results(
          shape, shape.inputs, [&](int64_t begin, int64_t end, int64_t first, int64_t last) {
            bf16_linear_back(with_rows(shape, end - begin),
                             numbers(gradients) + begin * shape.outputs, weight.data_ptr<float>(),
                             first, last, numbers(wanted[0]) + begin * shape.inputs);
          });
    }
    const bool wants_bias = context->saved_data[kHasBias].toBool() && context->needs_input_grad(2);
    if (wants_bias) wanted[2] = torch::zeros({shape.outputs}, weight.options());
    if (context->needs_input_grad(1)) {
      wanted[1] = torch::empty_like(weight);
      sum_gradients(shape, input, gradients, wanted[1], wanted[2]);
    } else if (wants_bias) {
      wanted[2] = gradients.reshape({-1, shape.outputs}).sum(0, false, torch::kFloat32);
    }
    return wanted;
  }
};

}  // namespace

bool suits_bfloat16_linear(const torch::Tensor& input, const torch::Tensor& weight) {
  return has_bf16_linear() && input.is_cpu() && weight.is_cpu() && weight.dim() == 2 &&
         weight.scalar_type() == torch::kFloat32 && weight.is_contiguous() &&
         (input.scalar_type() == torch::kFloat32 || input.scalar_type() == torch::kBFloat16) &&
         input.dim() >= 1 && input.numel() > 0 && input.size(-1) == weight.size(1) &&
         weight.size(0) % kBf16LinearUnit == 0 && weight.size(1) % kBf16LinearUnit == 0;
}

torch::Tensor bfloat16_linear(const torch::Tensor& input, const torch::Tensor& weight,
                              const torch::Tensor& bias) {
  check(suits_bfloat16_linear(input, weight), "bfloat16_linear: needs input [..., inputs] and ",
        "float32 weight [outputs, inputs], both multiples of ", kBf16LinearUnit, ", got ",
        input.sizes(), " and ", weight.sizes());
  return Bfloat16Linear::apply(input.to(torch::kBFloat16).contiguous(), weight, if_defined(bias));
}

}  // namespace kelvin
