#include <torch/types.h>

#include "kelvin/ops/simplex_map.h"

namespace kelvin {
namespace {

// Which logits get a probability above 0, for logits whose largest is 0 in every row.
torch::Tensor sparsemax_support_of(const torch::Tensor& logits) {
  torch::NoGradGuard no_grad;
  // One that is smaller by 1 or more gets nothing; without those, sums stay small and finite.
  const auto sorted = std::get<0>(logits.clamp_min(-1).sort(-1, /*descending=*/true));
  const auto ranks = torch::ones_like(sorted).cumsum(-1);
  const auto sums = sorted.cumsum(-1);
  // At least 1 among NaNs as well, which shall come out as NaNs.
  const auto size = (1 + ranks * sorted > sums).sum(-1, /*keepdim=*/true).clamp_min(1);
  const auto threshold = (sums.gather(-1, size - 1) - 1) / size;
  return logits > threshold;
}

// The point of the simplex that is nearest to the logits: max(logit - threshold, 0), where the
// threshold makes the sum 1.
torch::Tensor sparsemax(const torch::Tensor& logits) {
  const auto shifted = logits - logits.detach().amax(-1, /*keepdim=*/true);
  const auto support = sparsemax_support_of(shifted);
  // Anew from its support, so that gradients pass through a mean and not through a sort.
  const auto sum = shifted.masked_fill(~support, 0).sum(-1, /*keepdim=*/true);
  const auto threshold = (sum - 1) / support.sum(-1, /*keepdim=*/true);
  return torch::relu(shifted - threshold);
}

const bool sparsemax_registered = add_simplex_map(
    "sparsemax",
    {
        .summary = "Euclidean projection onto the simplex: most probabilities are exactly 0",
        .reference = "From softmax to sparsemax, arXiv 1602.02068",
        .make = [](Settings&) { return simplex_map("sparsemax", sparsemax); },
    });

}  // namespace
}  // namespace kelvin
