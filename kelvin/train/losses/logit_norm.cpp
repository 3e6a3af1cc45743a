#include <torch/types.h>

#include "kelvin/ops/cross_entropy.h"
#include "kelvin/train/loss.h"

namespace kelvin {
namespace {

constexpr double kNormOffset = 1e-7;  // the authors'

LossValues logit_norm(const torch::Tensor& logits, const torch::Tensor& labels,
                      const torch::Tensor& temperature) {
  check_loss_arguments("logit_norm", logits, labels, temperature);
  const auto type = logits.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  // In double precision, in which no square of a float overflows or vanishes.
  const auto exact = logits.to(torch::kFloat64);
  const auto norms = exact.norm(2, /*dim=*/1, /*keepdim=*/true);
  auto values =
      tempered_cross_entropy((exact / (norms + kNormOffset)).to(type), labels, temperature);
  // Logits that differ may have directions that do not, once they are rounded.
  values.predictions = logits.detach().argmax(1);
  return values;
}

const bool logit_norm_registered = losses().add(
    "logit_norm",
    {
        .summary = "cross-entropy of softmax(logits / (T (their norm + 1e-7))): T is the paper's "
                   "tau, there 0.04",
        .reference = "Mitigating neural network overconfidence with logit normalization, "
                     "arXiv 2205.09310",
        .make = [](Settings&) { return Loss{logit_norm}; },
    });

}  // namespace
}  // namespace kelvin
