#include <torch/types.h>

#include "kelvin/ops/cross_entropy.h"
#include "kelvin/train/loss.h"

namespace kelvin {
namespace {

LossValues mse(const torch::Tensor& logits, const torch::Tensor& labels,
               const torch::Tensor& temperature) {
  check_loss_arguments("mse", logits, labels, temperature);
  const auto logs = tempered_logs(logits, temperature);
  const auto one_hot =
      torch::zeros_like(logs.detach()).scatter_(1, labels.to(torch::kInt64).unsqueeze(1), 1);
  return described_loss((logs.exp() - one_hot).square().mean(1), logs, logits);
}

const bool mse_registered = losses().add(
    "mse",
    {
        .summary = "mean over samples and classes of (softmax(logits / T) - one-hot label) squared",
        .reference = "Unpacking Softmax, appendix F",
        .make = [](Settings&) { return Loss{mse}; },
    });

}  // namespace
}  // namespace kelvin
