#include "kelvin/ops/adaptive_attention.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/kernels/adaptive_attention.h"
#include "kelvin/kernels/bf16_adaptive_attention.h"
#include "kelvin/ops/adaptive_softmax.h"
#include "kelvin/ops/libtorch.h"
#include "kelvin/ops/operators.h"
#include "kelvin/ops/parallel_for.h"
#include "kelvin/ops/reference_ops.h"
#include "kelvin/ops/tensors.h"

namespace kelvin {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Queries, keys, values, mask (an empty one is none), causal, factor, and beta's coefficients,
// floor, threshold and what it does past the peak.
struct AttentionArguments {
  torch::Tensor queries = {};
  torch::Tensor keys = {};
  torch::Tensor values = {};
  torch::Tensor mask = {};
  bool is_causal = false;
  double factor = 1;
  AdaptiveSoftmaxOptions softmax = {};
};

AttentionMask mask_of(const AttentionArguments& given) {
  AttentionMask mask{.is_causal = given.is_causal};
  if (given.mask.numel() == 0) return mask;
  mask.bytes = static_cast<const uint8_t*>(given.mask.data_ptr());
  const auto step = [&](int64_t dim) {
    return given.mask.size(dim) == 1 ? 0 : given.mask.stride(dim);
  };
  mask.sample_step = step(0);
  mask.head_step = step(1);
  mask.query_step = step(2);
  return mask;
}

template <class Number>
AdaptiveAttention<Number> attention_of(const AttentionArguments& given) {
  return {.queries = numbers<Number>(given.queries),
          .keys = numbers<Number>(given.keys),
          .values = numbers<Number>(given.values),
          .samples = given.queries.size(0),
          .heads = given.queries.size(1),
          .query_count = given.queries.size(2),
          .key_count = given.keys.size(2),
          .width = given.queries.size(3),
          .value_width = given.values.size(3),
          .factor = given.factor,
          .curve = adaptive_curve(given.softmax),
          .mask = mask_of(given)};
}

torch::Tensor empty_mixed(const AttentionArguments& given) {
  auto sizes = given.queries.sizes().vec();
  sizes.back() = given.values.size(3);
  return torch::empty(sizes, given.queries.options().requires_grad(false));
}

template <class Number>
torch::Tensor mixed_by_kernel(const AttentionArguments& given) {
  const auto attention = attention_of<Number>(given);
  const auto set = widest_instruction_set();
  const auto heads = attention.samples * attention.heads;
  const auto size = packed_head_size(attention, set);
  const auto packed = torch::empty({heads, size}, torch::kFloat32);
  auto* floats = numbers<float>(packed);
  parallel_for(0, heads, 1, [&](int64_t begin, int64_t end) {
    for (auto head = begin; head < end; ++head) {
      pack_head(attention, head, floats + head * size, set);
    }
  });
  auto mixed = empty_mixed(given);
  parallel_for(0, heads * blocks_of_head(attention), 1, [&](int64_t begin, int64_t end) {
    adaptive_attention(attention, floats, begin, end, numbers<Number>(mixed), set);
  });
  return mixed;
}

// The same with products of bfloat16.
torch::Tensor mixed_in_bf16(const AttentionArguments& given) {
  const auto attention = attention_of<Bf16>(given);
  const auto heads = attention.samples * attention.heads;
  const auto size = bf16_packed_head_size(attention);
  const auto packed = torch::empty({heads, size}, torch::kInt32);
  auto* pairs = numbers<uint32_t>(packed);
  parallel_for(0, heads, 1, [&](int64_t begin, int64_t end) {
    for (auto head = begin; head < end; ++head) {
      bf16_pack_head(attention, head, pairs + head * size);
    }
  });
  auto mixed = empty_mixed(given);
  parallel_for(0, heads * bf16_blocks_of_head(attention), 1, [&](int64_t begin, int64_t end) {
    bf16_adaptive_attention(attention, pairs, begin, end, numbers(mixed));
  });
  return mixed;
}

using ThreeTensors = std::tuple<torch::Tensor, torch::Tensor, torch::Tensor>;

template <class Number>
ThreeTensors gradients_by_kernel(const AttentionArguments& given, const torch::Tensor& incoming) {
  const auto attention = attention_of<Number>(given);
  ThreeTensors wanted = {torch::empty_like(given.queries), torch::empty_like(given.keys),
                         torch::empty_like(given.values)};
  const AdaptiveAttentionGradient<Number> gradient{.mixed = numbers<Number>(incoming),
                                                   .detach_beta = given.softmax.detach_beta,
                                                   .queries = numbers<Number>(std::get<0>(wanted)),
                                                   .keys = numbers<Number>(std::get<1>(wanted)),
                                                   .values = numbers<Number>(std::get<2>(wanted))};
  parallel_for(0, attention.samples * attention.heads, 1, [&](int64_t begin, int64_t end) {
    adaptive_attention_gradient(attention, gradient, begin, end);
  });
  return wanted;
}

// What the kernel reads as it lies in memory.
void check_for_kernel(const AttentionArguments& given) {
  const auto type = given.queries.scalar_type();
  bool suits = type == torch::kFloat32 || type == torch::kBFloat16;
  for (const auto& each : {given.queries, given.keys, given.values}) {
    suits = suits && each.dim() == 4 && each.scalar_type() == type && each.is_contiguous() &&
            each.numel() > 0;
  }
  suits = suits && given.keys.sizes().slice(0, 2) == given.queries.sizes().slice(0, 2) &&
          given.keys.size(3) == given.queries.size(3) &&
          given.values.sizes().slice(0, 3) == given.keys.sizes().slice(0, 3) &&
          given.factor >= 1e-15 && given.factor <= 1e10 && suits_adaptive_kernel(given.softmax);
  if (suits && given.mask.numel() > 0) {
    suits = given.mask.scalar_type() == torch::kBool && given.mask.dim() == 4 &&
            given.mask.is_contiguous() && given.mask.size(3) == given.keys.size(2);
    for (int64_t dim = 0; suits && dim < 3; ++dim) {
      suits = given.mask.size(dim) == 1 || given.mask.size(dim) == given.queries.size(dim);
    }
  }
  check(suits, "_adaptive_attention: has no kernel for these arguments");
}

// NOLINTBEGIN(readability-function-size): parameters are those of the operators

AttentionArguments arguments_of(const torch::Tensor& queries, const torch::Tensor& keys,
                                const torch::Tensor& values, const torch::Tensor& mask,
                                bool is_causal, double factor, c10::ArrayRef<double> curve,
                                int64_t past_the_peak, bool detach_beta) {
  AttentionArguments given{.queries = queries,
                           .keys = keys,
                           .values = values,
                           .mask = mask,
                           .is_causal = is_causal,
                           .factor = factor};
  auto& softmax = given.softmax;
  check(curve.size() == softmax.coefficients.size() + 2,
        "_adaptive_attention: a curve is coefficients, floor and threshold");
  std::copy_n(curve.begin(), softmax.coefficients.size(), softmax.coefficients.begin());
  softmax.floor = curve[curve.size() - 2];
  softmax.threshold = curve.back();
  softmax.past_the_peak = static_cast<PastThePeak>(past_the_peak);
  softmax.detach_beta = detach_beta;
  check_for_kernel(given);
  return given;
}

std::vector<double> numbers_of_curve(const AdaptiveSoftmaxOptions& options) {
  std::vector<double> curve(options.coefficients.begin(), options.coefficients.end());
  curve.push_back(options.floor);
  curve.push_back(options.threshold);
  return curve;
}

torch::Tensor mixed_on_cpu(const torch::Tensor& queries, const torch::Tensor& keys,
                           const torch::Tensor& values, const torch::Tensor& mask, bool is_causal,
                           double factor, c10::ArrayRef<double> curve, int64_t past_the_peak) {
  const auto given = arguments_of(queries, keys, values, mask, is_causal, factor, curve,
                                  past_the_peak, /*detach_beta=*/false);
  if (queries.scalar_type() == torch::kFloat32) return mixed_by_kernel<float>(given);
  return suits_bf16_adaptive_attention(attention_of<Bf16>(given)) ? mixed_in_bf16(given)
                                                                  : mixed_by_kernel<Bf16>(given);
}

torch::Tensor mixed_on_meta(const torch::Tensor& queries, const torch::Tensor&,
                            const torch::Tensor& values, const torch::Tensor&, bool, double,
                            c10::ArrayRef<double>, int64_t) {
  // Made of both, whose sizes may be open.
  return queries.narrow(3, 0, 1).matmul(values.narrow(2, 0, 1));
}

ThreeTensors gradients_on_cpu(const torch::Tensor& incoming, const torch::Tensor& queries,
                              const torch::Tensor& keys, const torch::Tensor& values,
                              const torch::Tensor& mask, bool is_causal, double factor,
                              c10::ArrayRef<double> curve, int64_t past_the_peak,
                              bool detach_beta) {
  const auto given = arguments_of(queries, keys, values, mask, is_causal, factor, curve,
                                  past_the_peak, detach_beta);
  check(incoming.scalar_type() == queries.scalar_type() && incoming.is_contiguous() &&
            incoming.numel() == queries.numel() / queries.size(3) * values.size(3),
        "_adaptive_attention_gradient: the gradient must be of the result's type and sizes");
  const bool is_bf16 = queries.scalar_type() == torch::kBFloat16;
  return (is_bf16 ? gradients_by_kernel<Bf16> : gradients_by_kernel<float>)(given, incoming);
}

ThreeTensors gradients_on_meta(const torch::Tensor&, const torch::Tensor& queries,
                               const torch::Tensor& keys, const torch::Tensor& values,
                               const torch::Tensor&, bool, double, c10::ArrayRef<double>, int64_t,
                               bool) {
  return {torch::empty_like(queries), torch::empty_like(keys), torch::empty_like(values)};
}

// NOLINTEND(readability-function-size)

TORCH_LIBRARY_FRAGMENT(kelvin, library) {
  library.def(
      "_adaptive_attention(Tensor queries, Tensor keys, Tensor values, Tensor mask, bool "
      "is_causal, float factor, float[] curve, int past_the_peak) -> Tensor");
  library.impl("_adaptive_attention", torch::dispatch(c10::DispatchKey::CPU, mixed_on_cpu));
  library.impl("_adaptive_attention", torch::dispatch(c10::DispatchKey::Meta, mixed_on_meta));
  library.def(
      "_adaptive_attention_gradient(Tensor gradient, Tensor queries, Tensor keys, Tensor values, "
      "Tensor mask, bool is_causal, float factor, float[] curve, int past_the_peak, bool "
      "detach_beta) -> (Tensor, Tensor, Tensor)");
  library.impl("_adaptive_attention_gradient",
               torch::dispatch(c10::DispatchKey::CPU, gradients_on_cpu));
  library.impl("_adaptive_attention_gradient",
               torch::dispatch(c10::DispatchKey::Meta, gradients_on_meta));
}

class FusedAdaptiveAttention : public torch::autograd::Function<FusedAdaptiveAttention> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& queries,
                               const torch::Tensor& keys, const torch::Tensor& values,
                               const torch::Tensor& mask, const AttentionArguments& given) {
    static const RegisteredKernel<decltype(mixed_on_cpu)> kernel("kelvin::_adaptive_attention");
    context->save_for_backward({queries, keys, values, mask});
    context->saved_data["is_causal"] = given.is_causal;
    context->saved_data["factor"] = given.factor;
    context->saved_data["curve"] = numbers_of_curve(given.softmax);
    context->saved_data["past_the_peak"] = static_cast<int64_t>(given.softmax.past_the_peak);
    context->saved_data["detach_beta"] = given.softmax.detach_beta;
    return kernel(queries, keys, values, mask, given.is_causal, given.factor,
                  numbers_of_curve(given.softmax),
                  static_cast<int64_t>(given.softmax.past_the_peak));
  }

  static variable_list backward(AutogradContext* context, const variable_list& results) {
    check_first_derivative("adaptive_attention");
    static const RegisteredKernel<decltype(gradients_on_cpu)> kernel(
        "kelvin::_adaptive_attention_gradient");
    const auto saved = context->get_saved_variables();
    auto& data = context->saved_data;
    const auto incoming = results.at(0).to(saved.at(0).scalar_type()).contiguous();
    const auto [queries, keys, values] = kernel(
        incoming, saved.at(0), saved.at(1), saved.at(2), saved.at(3), data["is_causal"].toBool(),
        data["factor"].toDouble(), data["curve"].toDoubleVector(), data["past_the_peak"].toInt(),
        data["detach_beta"].toBool());
    return {queries, keys, values, torch::Tensor(), torch::Tensor()};
  }
};

constexpr double kUnseen = -std::numeric_limits<double>::infinity();

torch::Tensor composed_attention(const AttentionArguments& given) {
  auto logits = given.queries.matmul(given.keys.transpose(2, 3));
  if (given.mask.numel() > 0) logits = logits.masked_fill(given.mask.logical_not(), kUnseen);
  if (given.is_causal) {
    const auto later = torch::ones_like(logits.detach(), torch::kBool).triu(1);
    logits = logits.masked_fill(later, kUnseen);
  }
  auto options = given.softmax;
  options.temperature = 1 / given.factor;
  return adaptive_softmax(logits, options).matmul(given.values);
}

void check_attention(const torch::Tensor& queries, const torch::Tensor& keys,
                     const torch::Tensor& values, const AdaptiveAttentionOptions& options) {
  constexpr auto kWhere = "adaptive_attention";
  const auto type = queries.scalar_type();
  check(queries.is_floating_point() && keys.scalar_type() == type && values.scalar_type() == type,
        kWhere, ": queries, keys and values must be of one floating type, are ", type, ", ",
        keys.scalar_type(), " and ", values.scalar_type());
  check(queries.dim() == 4 && keys.dim() == 4 && values.dim() == 4, kWhere,
        ": needs queries, keys and values [samples, heads, tokens, width], got ", queries.dim(),
        ", ", keys.dim(), " and ", values.dim(), " dimensions");
  check(std::isfinite(options.scale) && options.scale >= 0, kWhere,
        ": scale must be a finite number above 0, or 0 for one over the root of the width, got ",
        options.scale);
  check_adaptive_options(kWhere, options.softmax);
  const auto& mask = options.mask;
  check(!mask.defined() || (mask.scalar_type() == torch::kBool && mask.dim() <= 4), kWhere,
        ": the mask must be boolean, true where a query sees a key, of at most 4 dimensions");
  if (!has_sizes(queries) || !has_sizes(keys) || !has_sizes(values)) return;
  check(keys.sizes().slice(0, 2) == queries.sizes().slice(0, 2) &&
            keys.size(3) == queries.size(3) &&
            values.sizes().slice(0, 3) == keys.sizes().slice(0, 3),
        kWhere, ": sizes of queries, keys and values must fit, are ", queries.sizes(), ", ",
        keys.sizes(), " and ", values.sizes());
  check(keys.size(2) > 0 && keys.size(3) > 0 && values.size(3) > 0, kWhere,
        ": needs at least one key, and widths above 0, got keys ", keys.sizes(), " and values ",
        values.sizes());
  if (!mask.defined() || !has_sizes(mask)) return;
  const std::vector<int64_t> sizes = {queries.size(0), queries.size(1), queries.size(2),
                                      keys.size(2)};
  bool fits = true;
  for (int64_t dim = 1; dim <= mask.dim(); ++dim) {
    fits = fits && (mask.size(-dim) == 1 || mask.size(-dim) == sizes[static_cast<size_t>(4 - dim)]);
  }
  check(fits, kWhere, ": the mask must have the sizes ", torch::IntArrayRef(sizes),
        " of the logits or expand to them, has ", mask.sizes());
}

// Four dimensions, the last of which has its whole length; empty for none.
torch::Tensor whole_mask(const torch::Tensor& mask, const torch::Tensor& keys) {
  if (!mask.defined()) return torch::empty({0}, keys.options().dtype(torch::kBool));
  auto whole = mask;
  while (whole.dim() < 4) whole = whole.unsqueeze(0);
  const auto places = torch::ones_like(keys.select(3, 0).select(0, 0).select(0, 0), torch::kBool);
  return whole.logical_and(places).contiguous();
}

}  // namespace

torch::Tensor adaptive_attention(const torch::Tensor& queries, const torch::Tensor& keys,
                                 const torch::Tensor& values,
                                 const AdaptiveAttentionOptions& options) {
  check_attention(queries, keys, values, options);
  const double scale = options.scale > 0
                           ? options.scale
                           : 1 / std::sqrt(static_cast<double>(fixed_size(queries, 3)));
  const auto type = queries.scalar_type();
  AttentionArguments given{.mask = whole_mask(options.mask, keys),
                           .is_causal = options.is_causal,
                           .factor = scale / options.softmax.temperature,
                           .softmax = options.softmax};
  given.softmax.temperature = 1;
  const bool is_half = type == torch::kFloat16;
  const auto as_computed = [&](const torch::Tensor& tensor) {
    return is_half ? tensor.to(torch::kFloat32) : tensor;
  };
  given.queries = as_computed(queries);
  given.keys = as_computed(keys);
  given.values = as_computed(values);
  const bool has_kernel = queries.is_cpu() && !uses_reference_ops() && type != torch::kFloat64 &&
                          suits_adaptive_kernel(given.softmax) && given.factor >= 1e-15 &&
                          given.factor <= 1e10;
  const bool is_empty = has_sizes(queries) && queries.numel() == 0;
  if (!has_kernel || is_empty) return composed_attention(given).to(type);
  return FusedAdaptiveAttention::apply(given.queries.contiguous(), given.keys.contiguous(),
                                       given.values.contiguous(), given.mask, given)
      .to(type);
}

}  // namespace kelvin
