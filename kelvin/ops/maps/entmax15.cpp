#include <torch/types.h>

#include "kelvin/ops/simplex_map.h"

namespace kelvin {
namespace {

// Which logits get a probability above 0, for halved logits whose largest is 0 in every row: as
// many of the largest as lie above the threshold that they would have among themselves.
torch::Tensor support_of(const torch::Tensor& halves) {
  torch::NoGradGuard no_grad;
  // One that is smaller by 1 or more gets nothing; without those, sums stay small and finite.
  const auto sorted = std::get<0>(halves.clamp_min(-1).sort(-1, /*descending=*/true));
  const auto ranks = torch::ones_like(sorted).cumsum(-1);
  const auto means = sorted.cumsum(-1) / ranks;
  const auto variances = sorted.square().cumsum(-1) / ranks - means.square();
  const auto thresholds = means - (1 / ranks - variances).clamp_min(0).sqrt();
  // At least 1 among NaNs as well, which shall come out as NaNs.
  const auto size = (thresholds <= sorted).sum(-1, /*keepdim=*/true).clamp_min(1);
  return halves >= sorted.gather(-1, size - 1);
}

// The maximiser of <probabilities, logits> + Tsallis entropy of order 1.5: max(logit / 2 -
// threshold, 0) squared, where the threshold makes the sum 1.  It is the smaller root of a
// quadratic equation over the support.
torch::Tensor entmax15(const torch::Tensor& logits) {
  const auto halves = (logits - logits.detach().amax(-1, /*keepdim=*/true)) / 2;
  const auto support = support_of(halves);
  // Anew from its support, so that gradients pass through a mean and not through a sort.
  const auto size = support.sum(-1, /*keepdim=*/true);
  const auto mean = halves.masked_fill(~support, 0).sum(-1, /*keepdim=*/true) / size;
  const auto deviations = (halves - mean).masked_fill(~support, 0);
  const auto rest = 1 - deviations.square().sum(-1, /*keepdim=*/true);  // at least 1 / size
  return torch::relu(halves - mean + (rest / size).sqrt()).square();
}

const bool entmax15_registered = add_simplex_map(
    "entmax15", {
                    .summary = "between softmax and sparsemax: small probabilities are exactly 0",
                    .reference = "Sparse sequence-to-sequence models, arXiv 1905.05702",
                    .make = [](Settings&) { return simplex_map("entmax15", entmax15); },
                });

}  // namespace
}  // namespace kelvin
