#include "kelvin/math/tempered_cross_entropy.h"

#include "kelvin/core/check.h"

namespace kelvin {

LossValues tempered_cross_entropy(const torch::Tensor& logits, const torch::Tensor& labels,
                                  const torch::Tensor& temperature,
                                  const CrossEntropyOptions& options) {
  check(logits.dim() == 2 && labels.dim() == 1 && logits.size(0) == labels.size(0),
        "cross_entropy: needs logits [samples, classes] and labels [samples], got ", logits.sizes(),
        " and ", labels.sizes());
  const auto shifted =
      (logits - logits.detach().amax(-1, /*keepdim=*/true)) / temperature.to(logits.scalar_type());
  const auto logs = torch::log_softmax(shifted, -1);
  const auto own = -logs.gather(1, labels.unsqueeze(1)).squeeze(1);
  const auto samples = (1 - options.smoothing) * own - options.smoothing * logs.mean(1);
  const auto detached = logs.detach();
  return {.loss = samples.mean(),
          .sample_losses = samples.detach(),
          .entropies = -(detached.exp() * detached).sum(1),
          .predictions = logits.detach().argmax(1)};
}

}  // namespace kelvin
