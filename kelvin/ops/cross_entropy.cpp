#include "kelvin/ops/cross_entropy.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/kernels/cross_entropy.h"
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

}  // namespace

void check_loss_arguments(const char* where, const torch::Tensor& logits,
                          const torch::Tensor& labels, const torch::Tensor& temperature) {
  check(logits.dim() == 2 && labels.dim() == 1 && logits.size(0) == labels.size(0), where,
        ": needs logits [samples, classes] and labels [samples], got ", logits.sizes(), " and ",
        labels.sizes());
  check(logits.numel() > 0, where, ": needs at least one sample and one class, got ",
        logits.sizes());
  check(logits.is_floating_point(), where, ": logits must be floating-point numbers, are ",
        logits.scalar_type());
  check(torch::isIntegralType(labels.scalar_type(), /*includeBool=*/false), where,
        ": labels must be whole numbers, are ", labels.scalar_type());
  check(temperature.numel() == 1 && temperature.is_floating_point(), where,
        ": the temperature must be one floating-point number, is ", temperature.scalar_type(), " ",
        temperature.sizes());
  check_temperature(where, temperature.item<double>());
  check_labels(where, labels, logits.size(1));
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr int64_t kEntriesPerTask = 32768;  // fewer cost less than waking a thread

// The values, and what they change by when logits and temperature do.
struct Differentiated {
  LossValues values;
  torch::Tensor gradient;  // undefined unless asked for
  double slope = 0;        // in the temperature
};

class FusedCrossEntropy : public torch::autograd::Function<FusedCrossEntropy> {
 public:
  static Variable forward(AutogradContext* context, const torch::Tensor& logits,
                          const torch::Tensor& temperature, const Differentiated& known) {
    context->save_for_backward({known.gradient});
    context->saved_data["slope"] = known.slope;
    context->saved_data["type"] = logits.scalar_type();
    if (temperature.requires_grad()) context->saved_data["temperature"] = temperature.detach();
    return known.values.loss;
  }

  static variable_list backward(AutogradContext* context, variable_list incoming) {
    check(!torch::GradMode::is_enabled(),
          "cross_entropy: must be differentiated once, got a request for the gradient's gradient");
    const double factor = incoming.front().item<double>();
    variable_list gradients(3);  // none for what is known of them
    if (context->needs_input_grad(0)) {
      auto gradient = context->get_saved_variables().front();
      // Handed out as it is where that does: whoever gets it may not write into it.
      if (factor != 1) gradient = gradient * factor;
      gradients[0] = gradient.to(context->saved_data["type"].toScalarType());
    }
    if (context->needs_input_grad(1)) {
      gradients[1] = torch::full_like(context->saved_data["temperature"].toTensor(),
                                      context->saved_data["slope"].toDouble() * factor);
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
  if (with_gradient) known.gradient = torch::empty(logits.sizes(), options);
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
  for (int64_t i = 0; i < samples; ++i) {
    const auto& row = values[static_cast<size_t>(i)];
    losses.template data_ptr<Scalar>()[i] = static_cast<Scalar>(row.loss);
    entropies.template data_ptr<Scalar>()[i] = static_cast<Scalar>(row.entropy);
    predictions.template data_ptr<int64_t>()[i] = row.prediction;
    loss += row.loss * rows.weight;
    known.slope += row.slope * rows.weight;
  }
  known.values = {.loss = torch::full({}, loss, options),
                  .sample_losses = losses,
                  .entropies = entropies,
                  .predictions = predictions};
  return known;
}

LossValues fused(const torch::Tensor& logits, const torch::Tensor& labels,
                 const torch::Tensor& temperature, double smoothing) {
  const bool with_gradient =
      torch::GradMode::is_enabled() && (logits.requires_grad() || temperature.requires_grad());
  const bool is_double = logits.scalar_type() == torch::kFloat64;
  const auto known = [&] {
    const torch::NoGradGuard no_grad;
    const auto numbers = logits.to(is_double ? torch::kFloat64 : torch::kFloat32).contiguous();
    const auto indices = labels.to(torch::kInt64).contiguous();
    const auto run = is_double ? differentiated<double> : differentiated<float>;
    return run(numbers, indices, temperature.item<double>(), smoothing, with_gradient);
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
  check_loss_arguments("cross_entropy", logits, labels, temperature);
  check(options.smoothing >= 0 && options.smoothing < 1,
        "cross_entropy: smoothing must be in [0, 1), is ", options.smoothing);
  const bool has_kernel = logits.is_cpu() && labels.is_cpu();
  return (has_kernel && !uses_reference_ops() ? fused : composed)(logits, labels, temperature,
                                                                  options.smoothing);
}

torch::Tensor tempered_logs(const torch::Tensor& logits, const torch::Tensor& temperature) {
  const auto type = logits.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const auto numbers = logits.to(type);
  // An infinite quotient would turn a gradient of 0 into NaN.
  const double lowest = std::max(-1e30 * temperature.item<double>(), -1e38);
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
