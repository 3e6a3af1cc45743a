#include "kelvin/train/loss.h"

#include <torch/torch.h>

#include "kelvin/core/check.h"
#include "kelvin/math/softmax.h"

namespace kelvin {

torch::Tensor cross_entropy(const torch::Tensor& logits, const torch::Tensor& labels,
                            double temperature) {
  check(logits.dim() == 2 && labels.dim() == 1 && logits.size(0) == labels.size(0),
        "cross_entropy: needs logits [samples, classes] and labels [samples], got ", logits.sizes(),
        " and ", labels.sizes());
  return torch::nll_loss(log_softmax(logits, {.temperature = temperature}), labels);
}

}  // namespace kelvin
