#include "kelvin/ops/adaptive_softmax.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kelvin/core/check.h"
#include "kelvin/kernels/adaptive_softmax.h"
#include "kelvin/ops/parallel_for.h"
#include "kelvin/ops/reference_ops.h"
#include "kelvin/ops/simplex_map.h"
#include "kelvin/ops/softmax.h"
#include "kelvin/ops/tensors.h"

namespace kelvin {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct PolynomialAt {
  double value = 0;
  double slope = 0;
};

PolynomialAt polynomial_at(const std::array<double, 5>& coefficients, double entropy) {
  PolynomialAt at;
  for (const double coefficient : coefficients) {
    at.slope = at.slope * entropy + at.value;
    at.value = at.value * entropy + coefficient;
  }
  return at;
}

// Beyond an entropy, beta is a line.
struct Bend {
  double entropy = kInfinity;
  double beta = 0;
  double slope = 0;
};

// At the highest of the polynomial's maxima beyond the threshold; nowhere if there is none below 64
// nats, which is more than any row has.
Bend bend_of(const AdaptiveSoftmaxOptions& options) {
  if (options.past_the_peak == PastThePeak::fall) return {};
  const auto slope_at = [&](double entropy) {
    return polynomial_at(options.coefficients, entropy).slope;
  };
  constexpr double kStep = 1.0 / 16;
  Bend bend;
  for (double low = options.threshold; low < 64; low += kStep) {
    double high = low + kStep;
    if (!(slope_at(low) > 0 && slope_at(high) <= 0)) continue;
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (slope_at(middle) > 0 ? low : high) = middle;
    }
    const double beta = polynomial_at(options.coefficients, low).value;
    if (bend.entropy == kInfinity || beta > bend.beta) bend = {.entropy = low, .beta = beta};
    low = high - kStep;
  }
  if (options.past_the_peak == PastThePeak::grow && bend.entropy < kInfinity) {
    bend.slope = bend.beta / bend.entropy;
  }
  return bend;
}

AdaptiveCurve curve_of(const AdaptiveSoftmaxOptions& options) {
  const auto bend = bend_of(options);
  return {.coefficients = options.coefficients,
          .floor = options.floor,
          .threshold = options.threshold,
          .bend = bend.entropy,
          .at_bend = bend.beta,
          .slope_beyond = bend.slope};
}

// Whether nothing the kernel multiplies overflows in single precision.
bool suits_kernel(const torch::Tensor& logits, const AdaptiveSoftmaxOptions& options) {
  constexpr double kLeast = 1e-15;
  constexpr double kMost = 1e10;
  const auto type = logits.scalar_type();
  return logits.is_cpu() && !uses_reference_ops() && type != torch::kFloat64 &&
         options.temperature >= kLeast && options.temperature <= kMost && options.floor >= kLeast &&
         options.floor <= kMost &&
         std::all_of(options.coefficients.begin(), options.coefficients.end(),
                     [](double coefficient) { return std::abs(coefficient) <= kMost; });
}

// What is known of each row, [kRowFacts, rows].
enum class RowFact { entropy, beta, spread, top_weight, largest, sum, mean, slope };
constexpr int64_t kRowFacts = 8;

struct KnownRows {
  torch::Tensor probabilities = {};
  torch::Tensor facts = {};  // undefined if nobody wants them
};

float* fact(const torch::Tensor& facts, RowFact which) {
  return facts.defined() ? facts.data_ptr<float>() + static_cast<int64_t>(which) * facts.size(1)
                         : nullptr;
}

int64_t rows_per_task(int64_t columns) {
  constexpr int64_t kNumbersPerTask = 32768;  // fewer cost less than waking a thread
  return std::max<int64_t>(1, kNumbersPerTask / columns);
}

template <class Number>
KnownRows computed_rows(const torch::Tensor& logits, const AdaptiveSoftmaxOptions& options,
                        bool with_facts, bool with_spreads) {
  const auto columns = logits.size(-1);
  const auto rows = logits.numel() / columns;
  KnownRows known{.probabilities =
                      torch::empty(logits.sizes(), logits.options().requires_grad(false))};
  if (with_facts) known.facts = torch::empty({kRowFacts, rows}, torch::kFloat32);
  const AdaptiveSoftmaxRows<Number> work{
      .logits = numbers<Number>(logits),
      .rows = rows,
      .columns = columns,
      .inverse_temperature = 1 / options.temperature,
      .curve = curve_of(options),
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
    const auto saved = context->get_saved_variables();
    const auto& logits = saved.at(0);
    const auto incoming = results.at(0).to(logits.scalar_type()).contiguous();
    const auto run =
        logits.scalar_type() == torch::kBFloat16 ? gradient_of_rows<Bf16> : gradient_of_rows<float>;
    return {run(logits, saved.at(1), incoming, context->saved_data["temperature"].toDouble(),
                context->saved_data["detach_beta"].toBool()),
            torch::Tensor(), torch::Tensor()};
  }
};

// Each fact of the rows of logits [..., n] as [...].
AdaptiveSoftmaxValues values_of(const torch::Tensor& probabilities, const torch::Tensor& facts,
                                const torch::Tensor& logits) {
  const auto shape = logits.sizes().slice(0, static_cast<size_t>(logits.dim() - 1));
  const auto of_rows = [&](RowFact which) {
    return facts[static_cast<int64_t>(which)].view(shape);
  };
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
    const auto run = is_bf16 ? computed_rows<Bf16> : computed_rows<float>;
    return run(inputs, options, with_values || with_gradient, with_values);
  }();
  auto probabilities = known.probabilities;
  if (with_gradient) probabilities = FusedAdaptiveSoftmax::apply(inputs, known, options);
  probabilities = probabilities.to(type);
  if (!with_values) return {.probabilities = probabilities};
  return values_of(probabilities, known.facts, logits);
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
  return (logits.numel() > 0 && suits_kernel(logits, options) ? fused_adaptive : composed_adaptive)(
      logits, options, with_values);
}

}  // namespace

void check_adaptive_options(const char* where, const AdaptiveSoftmaxOptions& options) {
  check_temperature(where, options.temperature);
  check(std::isfinite(options.floor) && options.floor > 0, where,
        ": the floor of beta must be a finite number above 0, got ", options.floor);
  check(options.threshold >= 0, where, ": the threshold of the entropy must not be negative, got ",
        options.threshold);
  check(std::all_of(options.coefficients.begin(), options.coefficients.end(),
                    [](double coefficient) { return std::isfinite(coefficient); }),
        where, ": the coefficients of beta must be finite numbers");
}

torch::Tensor adaptive_beta(const torch::Tensor& entropies, const AdaptiveSoftmaxOptions& options) {
  check_adaptive_options("adaptive_beta", options);
  const auto bend = bend_of(options);
  auto betas = torch::full_like(entropies, options.coefficients.front());
  for (size_t i = 1; i < options.coefficients.size(); ++i) {
    betas = betas * entropies + options.coefficients[i];
  }
  if (bend.entropy < kInfinity) {
    const auto line = (entropies - bend.entropy) * bend.slope + bend.beta;
    betas = torch::where(entropies > bend.entropy, line, betas);
  }
  return betas.clamp_min(options.floor).masked_fill(entropies <= options.threshold, 1);
}

torch::Tensor adaptive_softmax(const torch::Tensor& logits, const AdaptiveSoftmaxOptions& options) {
  return run_adaptive("adaptive_softmax", logits, options, /*with_values=*/false).probabilities;
}

AdaptiveSoftmaxValues adaptive_softmax_values(const torch::Tensor& logits,
                                              const AdaptiveSoftmaxOptions& options) {
  return run_adaptive("adaptive_softmax_values", logits, options, /*with_values=*/true);
}

}  // namespace kelvin
