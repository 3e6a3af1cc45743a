#include "kelvin/ops/cross_entropy.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/kernels/cross_entropy.h"
#include "kelvin/ops/libtorch.h"
#include "kelvin/ops/operators.h"
#include "kelvin/ops/parallel_for.h"
#include "kelvin/ops/reference_ops.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

// Read one by one: the maximum of a small tensor takes longer than the loss itself.
void check_labels(const char* where, const torch::Tensor& labels, int64_t classes) {
  const torch::NoGradGuard no_grad;
  const auto indices = labels.to(torch::kCPU, torch::kInt64).contiguous();
  const auto* first = indices.data_ptr<int64_t>();
  for (int64_t i = 0; i < indices.numel(); ++i) {
    if (first[i] >= 0 && first[i] < classes) continue;
    check(false, where, ": labels must be in [0, ", classes, "), got ", first[i], " for sample ",
          i);
  }
}

void check_loss_sizes(const char* where, const torch::Tensor& logits, const torch::Tensor& labels,
                      const torch::Tensor& temperature) {
  if (has_sizes(logits) && has_sizes(labels)) {
    check(logits.dim() == 2 && labels.dim() == 1 && logits.size(0) == labels.size(0), where,
          ": needs logits [samples, classes] and labels [samples], got ", logits.sizes(), " and ",
          labels.sizes());
    check(logits.numel() > 0, where, ": needs at least one sample and one class, got ",
          logits.sizes());
  }
  check(logits.is_floating_point(), where, ": logits must be floating-point numbers, are ",
        logits.scalar_type());
  check(torch::isIntegralType(labels.scalar_type(), /*includeBool=*/false), where,
        ": labels must be whole numbers, are ", labels.scalar_type());
  check(temperature.numel() == 1 && temperature.is_floating_point(), where,
        ": the temperature must be one floating-point number, is ", temperature.scalar_type(), " ",
        temperature.sizes());
}

void check_loss_numbers(const char* where, const torch::Tensor& logits, const torch::Tensor& labels,
                        const torch::Tensor& temperature) {
  check_temperature(where, temperature.item<double>());
  check_labels(where, labels, logits.size(1));
}

}  // namespace

void check_loss_arguments(const char* where, const torch::Tensor& logits,
                          const torch::Tensor& labels, const torch::Tensor& temperature) {
  check_loss_sizes(where, logits, labels, temperature);
  if (has_numbers(labels)) check_loss_numbers(where, logits, labels, temperature);
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr int64_t kEntriesPerTask = 32768;  // fewer cost less than waking a thread

// The values, and what they change by when logits and temperature do.
struct Differentiated {
  LossValues values;
  torch::Tensor gradient;  // empty unless asked for
  torch::Tensor slope;     // in the temperature: one number of float64
};

class FusedCrossEntropy : public torch::autograd::Function<FusedCrossEntropy> {
 public:
  static Variable forward(AutogradContext* context, const torch::Tensor& logits,
                          const torch::Tensor& temperature, const Differentiated& known) {
    context->save_for_backward({known.gradient, known.slope});
    context->saved_data["type"] = logits.scalar_type();
    if (temperature.requires_grad()) context->saved_data["temperature"] = temperature.detach();
    return known.values.loss;
  }

  static variable_list backward(AutogradContext* context, variable_list incoming) {
    check(!torch::GradMode::is_enabled(),
          "cross_entropy: must be differentiated once, got a request for the gradient's gradient");
    const auto& factor = incoming.front();
    const auto saved = context->get_saved_variables();
    variable_list gradients(3);  // none for what is known of them
    if (context->needs_input_grad(0)) {
      auto gradient = saved.at(0);
      // Handed out as it is where that does: whoever gets it may not write into it.
      const bool is_one = factor.is_cpu() && has_numbers(factor) && factor.item<double>() == 1;
      if (!is_one) gradient = gradient * factor;
      gradients[0] = gradient.to(context->saved_data["type"].toScalarType());
    }
    if (context->needs_input_grad(1)) {
      const auto temperature = context->saved_data["temperature"].toTensor();
      gradients[1] =
          (saved.at(1) * factor).to(temperature.scalar_type()).expand_as(temperature).clone();
    }
    return gradients;
  }
};

template <class Scalar>
Differentiated differentiated(const torch::Tensor& logits, const torch::Tensor& labels,
                              double temperature, double smoothing, bool with_gradient) {
  const auto samples = logits.size(0);
  std::vector<RowValues> values(static_cast<size_t>(samples));
  const auto options = logits.options().requires_grad(false);
  Differentiated known;
  known.gradient =
      with_gradient ? torch::empty(logits.sizes(), options) : torch::empty({0, 0}, options);
  const CrossEntropyRows<Scalar> rows{
      .logits = logits.data_ptr<Scalar>(),
      .labels = labels.data_ptr<int64_t>(),
      .classes = logits.size(1),
      .temperature = temperature,
      .smoothing = smoothing,
      .weight = 1 / static_cast<double>(samples),
      .gradient = with_gradient ? known.gradient.template data_ptr<Scalar>() : nullptr,
      .values = values.data()};
  parallel_for(0, samples, std::max<int64_t>(1, kEntriesPerTask / rows.classes),
               [&](int64_t begin, int64_t end) { cross_entropy_rows(rows, begin, end); });

  auto losses = torch::empty({samples}, options);
  auto entropies = torch::empty({samples}, options);
  auto predictions = torch::empty({samples}, options.dtype(torch::kInt64));
  double loss = 0;
  double slope = 0;
  for (int64_t i = 0; i < samples; ++i) {
    const auto& row = values[static_cast<size_t>(i)];
    losses.template data_ptr<Scalar>()[i] = static_cast<Scalar>(row.loss);
    entropies.template data_ptr<Scalar>()[i] = static_cast<Scalar>(row.entropy);
    predictions.template data_ptr<int64_t>()[i] = row.prediction;
    loss += row.loss * rows.weight;
    slope += row.slope * rows.weight;
  }
  known.values = {.loss = torch::full({}, loss, options),
                  .sample_losses = losses,
                  .entropies = entropies,
                  .predictions = predictions};
  known.slope = torch::full({}, slope, torch::kFloat64);
  return known;
}

using CrossEntropyResult = std::tuple<torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor,
                                      torch::Tensor, torch::Tensor>;

CrossEntropyResult cross_entropy_on_cpu(const torch::Tensor& logits, const torch::Tensor& labels,
                                        const torch::Tensor& temperature, double smoothing,
                                        bool with_gradient) {
  check_loss_sizes("cross_entropy", logits, labels, temperature);
  check_loss_numbers("cross_entropy", logits, labels, temperature);
  const bool is_double = logits.scalar_type() == torch::kFloat64;
  const auto numbers = logits.to(is_double ? torch::kFloat64 : torch::kFloat32).contiguous();
  const auto indices = labels.to(torch::kInt64).contiguous();
  const auto run = is_double ? differentiated<double> : differentiated<float>;
  const auto known = run(numbers, indices, temperature.item<double>(), smoothing, with_gradient);
  return {known.values.loss,      known.values.sample_losses,
          known.values.entropies, known.values.predictions,
          known.gradient,         known.slope};
}

CrossEntropyResult cross_entropy_on_meta(const torch::Tensor& logits, const torch::Tensor& labels,
                                         const torch::Tensor& temperature, double,
                                         bool with_gradient) {
  const bool is_double = logits.scalar_type() == torch::kFloat64;
  const auto numbers = torch::empty_like(logits, is_double ? torch::kFloat64 : torch::kFloat32);
  const auto of_samples = numbers.select(1, 0);
  return {torch::empty({}, numbers.options()),
          torch::empty_like(of_samples),
          torch::empty_like(of_samples),
          torch::empty_like(labels, torch::kInt64),
          with_gradient ? numbers : torch::empty({0, 0}, numbers.options()),
          torch::empty({}, temperature.options().dtype(torch::kFloat64))};
}

TORCH_LIBRARY_FRAGMENT(kelvin, library) {
  constexpr auto kName = "_cross_entropy_rows";
  library.def(
      "_cross_entropy_rows(Tensor logits, Tensor labels, Tensor temperature, float smoothing, bool "
      "with_gradient) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)");
  library.impl(kName, torch::dispatch(c10::DispatchKey::CPU, cross_entropy_on_cpu));
  library.impl(kName, torch::dispatch(c10::DispatchKey::Meta, cross_entropy_on_meta));
}

LossValues fused(const torch::Tensor& logits, const torch::Tensor& labels,
                 const torch::Tensor& temperature, double smoothing) {
  const bool with_gradient =
      torch::GradMode::is_enabled() && (logits.requires_grad() || temperature.requires_grad());
  const auto known = [&]() -> Differentiated {
    static const RegisteredKernel<CrossEntropyResult(const torch::Tensor&, const torch::Tensor&,
                                                     const torch::Tensor&, double, bool)>
        rows("kelvin::_cross_entropy_rows");
    const torch::NoGradGuard no_grad;
    const auto [loss, sample_losses, entropies, predictions, gradient, slope] =
        rows(logits, labels, temperature, smoothing, with_gradient);
    return {.values = {.loss = loss,
                       .sample_losses = sample_losses,
                       .entropies = entropies,
                       .predictions = predictions},
            .gradient = gradient,
            .slope = slope};
  }();
  auto values = known.values;
  if (with_gradient) values.loss = FusedCrossEntropy::apply(logits, temperature, known);
  return values;
}

// The same of LibTorch's parts, for reference ops and for devices that have no kernel here.
LossValues composed(const torch::Tensor& logits, const torch::Tensor& labels,
                    const torch::Tensor& temperature, double smoothing) {
  const auto logs = tempered_logs(logits, temperature);
  const auto own = -logs.gather(1, labels.to(torch::kInt64).unsqueeze(1)).squeeze(1);
  return described_loss((1 - smoothing) * own - smoothing * logs.mean(1), logs, logits);
}

}  // namespace

LossValues tempered_cross_entropy(const torch::Tensor& logits, const torch::Tensor& labels,
                                  const torch::Tensor& temperature,
                                  const CrossEntropyOptions& options) {
  const bool has_kernel = logits.is_cpu() && labels.is_cpu() && !uses_reference_ops();
  // The kernel looks at the numbers itself.
  (has_kernel ? check_loss_sizes : check_loss_arguments)("cross_entropy", logits, labels,
                                                         temperature);
  check(options.smoothing >= 0 && options.smoothing < 1,
        "cross_entropy: smoothing must be in [0, 1), is ", options.smoothing);
  return (has_kernel ? fused : composed)(logits, labels, temperature, options.smoothing);
}

torch::Tensor tempered_logs(const torch::Tensor& logits, const torch::Tensor& temperature) {
  const auto type = logits.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const auto numbers = logits.to(type);
  // An infinite quotient would turn a gradient of 0 into NaN.
  const auto lowest = (-1e30 * temperature.detach().to(type).squeeze()).clamp_min(-1e38);
  const auto distances = (numbers - numbers.detach().amax(-1, /*keepdim=*/true)).clamp_min(lowest);
  return torch::log_softmax(distances / temperature.to(type).squeeze(), -1);
}

LossValues described_loss(const torch::Tensor& sample_losses, const torch::Tensor& logs,
                          const torch::Tensor& logits) {
  const auto detached = logs.detach();
  return {.loss = sample_losses.mean(),
          .sample_losses = sample_losses.detach(),
          .entropies = -(detached.exp() * detached).sum(1),
          .predictions = logits.detach().argmax(1)};
}

}  // namespace kelvin
