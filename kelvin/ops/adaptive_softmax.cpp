#include "kelvin/ops/adaptive_softmax.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/kernels/adaptive_softmax.h"
#include "kelvin/ops/libtorch.h"
#include "kelvin/ops/operators.h"
#include "kelvin/ops/parallel_for.h"
#include "kelvin/ops/reference_ops.h"
#include "kelvin/ops/simplex_map.h"
#include "kelvin/ops/tensors.h"

namespace kelvin {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool suits_kernel(const torch::Tensor& logits, const AdaptiveSoftmaxOptions& options) {
  return logits.is_cpu() && !uses_reference_ops() && logits.scalar_type() != torch::kFloat64 &&
         suits_adaptive_kernel(options);
}

// What the kernel reads as it lies in memory.
bool is_readable_by_kernel(const torch::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  return (type == torch::kFloat32 || type == torch::kBFloat16) && tensor.is_contiguous() &&
         tensor.numel() > 0;
}

// What is known of each row: [kRowFacts, ...] for logits [..., n], or empty if nobody wants them.
enum class RowFact { entropy, beta, spread, top_weight, largest, sum, mean, slope };
constexpr int64_t kRowFacts = 8;

struct KnownRows {
  torch::Tensor probabilities = {};
  torch::Tensor facts = {};
};

float* fact(const torch::Tensor& facts, RowFact which) {
  const auto rows = facts.numel() / kRowFacts;
  return rows == 0 ? nullptr : facts.data_ptr<float>() + static_cast<int64_t>(which) * rows;
}

int64_t rows_per_task(int64_t columns) {
  constexpr int64_t kNumbersPerTask = 32768;  // fewer cost less than waking a thread
  return std::max<int64_t>(1, kNumbersPerTask / columns);
}

torch::Tensor empty_facts(const torch::Tensor& logits, bool with_facts) {
  std::vector<int64_t> sizes = {kRowFacts, 0};
  if (with_facts) {
    sizes.assign(logits.sizes().begin(), logits.sizes().end() - 1);
    sizes.insert(sizes.begin(), kRowFacts);
  }
  return torch::empty(sizes, torch::kFloat32);
}

template <class Number>
KnownRows computed_rows(const torch::Tensor& logits, const AdaptiveSoftmaxOptions& options,
                        bool with_facts, bool with_spreads) {
  const auto columns = logits.size(-1);
  const auto rows = logits.numel() / columns;
  KnownRows known{.probabilities =
                      torch::empty(logits.sizes(), logits.options().requires_grad(false))};
  known.facts = empty_facts(logits, with_facts);
  const AdaptiveSoftmaxRows<Number> work{
      .logits = numbers<Number>(logits),
      .rows = rows,
      .columns = columns,
      .inverse_temperature = 1 / options.temperature,
      .curve = adaptive_curve(options),
      .result = numbers<Number>(known.probabilities),
      .numbers = {.entropy = fact(known.facts, RowFact::entropy),
                  .beta = fact(known.facts, RowFact::beta),
                  .spread = with_spreads ? fact(known.facts, RowFact::spread) : nullptr,
                  .top_weight = fact(known.facts, RowFact::top_weight),
                  .largest = fact(known.facts, RowFact::largest),
                  .sum = fact(known.facts, RowFact::sum),
                  .mean = fact(known.facts, RowFact::mean),
                  .slope = fact(known.facts, RowFact::slope)}};
  parallel_for(0, rows, rows_per_task(columns),
               [&](int64_t begin, int64_t end) { adaptive_softmax_rows(work, begin, end); });
  return known;
}

template <class Number>
torch::Tensor gradient_of_rows(const torch::Tensor& logits, const torch::Tensor& facts,
                               const torch::Tensor& incoming, double temperature,
                               bool detach_beta) {
  auto wanted = torch::empty_like(logits);
  const auto columns = logits.size(-1);
  const AdaptiveSoftmaxGradient<Number> work{
      .logits = numbers<Number>(logits),
      .gradient = numbers<Number>(incoming),
      .rows = logits.numel() / columns,
      .columns = columns,
      .inverse_temperature = 1 / temperature,
      .beta = fact(facts, RowFact::beta),
      .top_weight = fact(facts, RowFact::top_weight),
      .largest = fact(facts, RowFact::largest),
      .sum = fact(facts, RowFact::sum),
      .mean = fact(facts, RowFact::mean),
      .slope = detach_beta ? nullptr : fact(facts, RowFact::slope),
      .result = numbers<Number>(wanted)};
  parallel_for(0, work.rows, rows_per_task(columns),
               [&](int64_t begin, int64_t end) { adaptive_softmax_gradient(work, begin, end); });
  return wanted;
}

using RowsSignature = std::tuple<torch::Tensor, torch::Tensor>(const torch::Tensor&,
                                                               c10::ArrayRef<double>, double,
                                                               double, int64_t, double, bool, bool);

// NOLINTBEGIN(readability-function-size): parameters are those of the operators

std::tuple<torch::Tensor, torch::Tensor> rows_on_cpu(const torch::Tensor& logits,
                                                     c10::ArrayRef<double> coefficients,
                                                     double floor, double threshold,
                                                     int64_t past_the_peak, double temperature,
                                                     bool with_facts, bool with_spreads) {
  AdaptiveSoftmaxOptions options{.floor = floor,
                                 .threshold = threshold,
                                 .past_the_peak = static_cast<PastThePeak>(past_the_peak),
                                 .temperature = temperature};
  check(coefficients.size() == options.coefficients.size() && suits_adaptive_kernel(options) &&
            is_readable_by_kernel(logits),
        "_adaptive_softmax_rows: has no kernel for these arguments");
  std::copy(coefficients.begin(), coefficients.end(), options.coefficients.begin());
  const bool is_bf16 = logits.scalar_type() == torch::kBFloat16;
  const auto run = is_bf16 ? computed_rows<Bf16> : computed_rows<float>;
  const auto known = run(logits, options, with_facts, with_spreads);
  return {known.probabilities, known.facts};
}

std::tuple<torch::Tensor, torch::Tensor> rows_on_meta(const torch::Tensor& logits,
                                                      c10::ArrayRef<double>, double, double,
                                                      int64_t, double, bool with_facts, bool) {
  // Made of logits, whose sizes may be open.
  const auto each = torch::empty_like(logits.select(-1, 0), torch::kFloat32);
  const auto facts = with_facts ? torch::stack(std::vector<torch::Tensor>(kRowFacts, each))
                                : torch::empty({kRowFacts, 0}, each.options());
  return {torch::empty_like(logits), facts};
}

// NOLINTEND(readability-function-size)

KnownRows known_rows(const torch::Tensor& logits, const AdaptiveSoftmaxOptions& options,
                     bool with_facts, bool with_spreads) {
  static const RegisteredKernel<RowsSignature> rows("kelvin::_adaptive_softmax_rows");
  const auto [probabilities, facts] = rows(
      logits, options.coefficients, options.floor, options.threshold,
      static_cast<int64_t>(options.past_the_peak), options.temperature, with_facts, with_spreads);
  return {probabilities, facts};
}

using GradientSignature = torch::Tensor(const torch::Tensor&, const torch::Tensor&,
                                        const torch::Tensor&, double, bool);

torch::Tensor gradient_on_cpu(const torch::Tensor& logits, const torch::Tensor& facts,
                              const torch::Tensor& incoming, double temperature, bool detach_beta) {
  check(suits_adaptive_kernel({.temperature = temperature}) && is_readable_by_kernel(logits) &&
            is_readable_by_kernel(incoming) && incoming.sizes() == logits.sizes() &&
            incoming.scalar_type() == logits.scalar_type() && is_readable_by_kernel(facts) &&
            facts.scalar_type() == torch::kFloat32 &&
            facts.numel() == kRowFacts * (logits.numel() / logits.size(-1)),
        "_adaptive_softmax_gradient: has no kernel for these arguments");
  const bool is_bf16 = logits.scalar_type() == torch::kBFloat16;
  const auto run = is_bf16 ? gradient_of_rows<Bf16> : gradient_of_rows<float>;
  return run(logits, facts, incoming, temperature, detach_beta);
}

torch::Tensor gradient_on_meta(const torch::Tensor& logits, const torch::Tensor&,
                               const torch::Tensor&, double, bool) {
  return torch::empty_like(logits);
}

TORCH_LIBRARY_FRAGMENT(kelvin, library) {
  library.def(
      "_adaptive_softmax_rows(Tensor logits, float[] coefficients, float floor, float threshold, "
      "int past_the_peak, float temperature, bool with_facts, bool with_spreads) -> (Tensor, "
      "Tensor)");
  library.impl("_adaptive_softmax_rows", torch::dispatch(c10::DispatchKey::CPU, rows_on_cpu));
  library.impl("_adaptive_softmax_rows", torch::dispatch(c10::DispatchKey::Meta, rows_on_meta));
  library.def(
      "_adaptive_softmax_gradient(Tensor logits, Tensor facts, Tensor gradient, float temperature, "
      "bool detach_beta) -> Tensor");
  library.impl("_adaptive_softmax_gradient",
               torch::dispatch(c10::DispatchKey::CPU, gradient_on_cpu));
  library.impl("_adaptive_softmax_gradient",
               torch::dispatch(c10::DispatchKey::Meta, gradient_on_meta));
}

class FusedAdaptiveSoftmax : public torch::autograd::Function<FusedAdaptiveSoftmax> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& logits,
                               const KnownRows& known, const AdaptiveSoftmaxOptions& options) {
    context->save_for_backward({logits, known.facts});
    context->saved_data["temperature"] = options.temperature;
    context->saved_data["detach_beta"] = options.detach_beta;
    return known.probabilities;
  }

  static variable_list backward(AutogradContext* context, const variable_list& results) {
    check_first_derivative("adaptive_softmax");
    static const RegisteredKernel<GradientSignature> gradient("kelvin::_adaptive_softmax_gradient");
    const auto saved = context->get_saved_variables();
    const auto& logits = saved.at(0);
    const auto incoming = results.at(0).to(logits.scalar_type()).contiguous();
    return {gradient(logits, saved.at(1), incoming, context->saved_data["temperature"].toDouble(),
                     context->saved_data["detach_beta"].toBool()),
            torch::Tensor(), torch::Tensor()};
  }
};

AdaptiveSoftmaxValues values_of(const torch::Tensor& probabilities, const torch::Tensor& facts) {
  const auto of_rows = [&](RowFact which) { return facts[static_cast<int64_t>(which)]; };
  return {.probabilities = probabilities,
          .entropies = of_rows(RowFact::entropy),
          .betas = of_rows(RowFact::beta),
          .spreads = of_rows(RowFact::spread),
          .top_weights = of_rows(RowFact::top_weight)};
}

AdaptiveSoftmaxValues fused_adaptive(const torch::Tensor& logits,
                                     const AdaptiveSoftmaxOptions& options, bool with_values) {
  const auto type = logits.scalar_type();
  const bool is_bf16 = type == torch::kBFloat16;
  const auto inputs = logits.to(is_bf16 ? type : torch::kFloat32).contiguous();
  const bool with_gradient = torch::GradMode::is_enabled() && inputs.requires_grad();
  const auto known = [&] {
    const torch::NoGradGuard no_grad;
    return known_rows(inputs, options, with_values || with_gradient, with_values);
  }();
  auto probabilities = known.probabilities;
  if (with_gradient) probabilities = FusedAdaptiveSoftmax::apply(inputs, known, options);
  probabilities = probabilities.to(type);
  if (!with_values) return {.probabilities = probabilities};
  return values_of(probabilities, known.facts);
}

// The same of LibTorch's parts.
AdaptiveSoftmaxValues composed_adaptive(const torch::Tensor& logits,
                                        const AdaptiveSoftmaxOptions& options, bool with_values) {
  const auto type = logits.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const auto numbers = logits.to(type);
  const auto largest = numbers.detach().amax(-1, /*keepdim=*/true);
  const auto is_empty = largest == -kInfinity;
  // Finite, or a gradient of 0 times it would be NaN; far enough down to leave nothing.
  const double lowest = type == torch::kFloat64 ? -1e300 : -1e37;
  const auto distances =
      ((numbers - largest).masked_fill(is_empty, 0) / options.temperature).clamp_min(lowest);
  const auto logs = torch::log_softmax(distances, -1);
  const auto entropies = -(logs.exp() * logs).sum(-1, /*keepdim=*/true).clamp_max(0);
  auto betas = adaptive_beta(entropies, options);
  if (options.detach_beta) betas = betas.detach();
  const auto probabilities =
      torch::softmax(betas * distances, -1).masked_fill(is_empty, 0).to(logits.scalar_type());
  if (!with_values) return {.probabilities = probabilities};

  const torch::NoGradGuard no_grad;
  const auto smallest =
      numbers.masked_fill(numbers == -kInfinity, kInfinity).amin(-1, /*keepdim=*/true);
  const auto top_weights = torch::softmax(betas * distances, -1).amax(-1, /*keepdim=*/true);
  const auto none = torch::zeros({}, numbers.options());
  const auto row_numbers = [&](const torch::Tensor& each, double of_empty) {
    return each.detach().masked_fill(is_empty, of_empty).squeeze(-1);
  };
  return {.probabilities = probabilities,
          .entropies = row_numbers(entropies, 0),
          .betas = row_numbers(betas, 1),
          .spreads = row_numbers(largest - smallest, 0),
          .top_weights = row_numbers(top_weights, 0)};
}

AdaptiveSoftmaxValues run_adaptive(const char* where, const torch::Tensor& logits,
                                   const AdaptiveSoftmaxOptions& options, bool with_values) {
  check_logits(where, logits);
  check_adaptive_options(where, options);
  const bool is_empty = has_sizes(logits) && logits.numel() == 0;
  return (!is_empty && suits_kernel(logits, options) ? fused_adaptive : composed_adaptive)(
      logits, options, with_values);
}

}  // namespace

torch::Tensor adaptive_softmax(const torch::Tensor& logits, const AdaptiveSoftmaxOptions& options) {
  return run_adaptive("adaptive_softmax", logits, options, /*with_values=*/false).probabilities;
}

AdaptiveSoftmaxValues adaptive_softmax_values(const torch::Tensor& logits,
                                              const AdaptiveSoftmaxOptions& options) {
  return run_adaptive("adaptive_softmax_values", logits, options, /*with_values=*/true);
}

}  // namespace kelvin
