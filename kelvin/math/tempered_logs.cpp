#include "kelvin/math/tempered_logs.h"

#include <algorithm>

namespace kelvin {

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
