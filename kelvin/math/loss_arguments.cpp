#include "kelvin/math/loss_arguments.h"

#include "kelvin/core/check.h"
#include "kelvin/math/softmax.h"

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

}  // namespace kelvin
