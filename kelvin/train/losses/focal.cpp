#include <torch/types.h>

#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/ops/cross_entropy.h"
#include "kelvin/train/loss.h"

namespace kelvin {
namespace {

LossValues focal(const torch::Tensor& logits, const torch::Tensor& labels,
                 const torch::Tensor& temperature, double gamma) {
  check_loss_arguments("focal", logits, labels, temperature);
  const auto logs = tempered_logs(logits, temperature);
  const auto own = labels.to(torch::kInt64).unsqueeze(1);
  const auto losses = -logs.gather(1, own).squeeze(1);
  // log(1 - p) from the other classes' logarithms: as p goes to 1 the power's derivative would be
  // infinity times 0, and so it is 0.
  const auto rest = logs.scatter(1, own, -1e30).logsumexp(1);
  return described_loss((gamma * rest).exp() * losses, logs, logits);
}

Loss make_focal(Settings& settings) {
  double gamma = 2;
  settings.read("gamma", gamma);
  check(std::isfinite(gamma) && gamma >= 0, settings.full_name("gamma"),
        ": must be a finite number of at least 0, got ", gamma);
  constexpr double kMost = 1e6;
  check(gamma <= kMost, settings.full_name("gamma"), ": must be at most ", kMost, ", got ", gamma);
  return {[gamma](const torch::Tensor& logits, const torch::Tensor& labels,
                  const torch::Tensor& temperature) {
    return focal(logits, labels, temperature, gamma);
  }};
}

const bool focal_registered = losses().add(
    "focal",
    {
        .summary = "(1 - p)^gamma times the cross-entropy at T, p the label's probability; gamma 2",
        .reference = "Focal loss for dense object detection, arXiv 1708.02002",
        .make = make_focal,
    });

}  // namespace
}  // namespace kelvin
