#include "kelvin/ops/simplex_map.h"

#include <limits>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

torch::Tensor shares_of(const torch::Tensor& logits, const SimplexMap& rule) {
  const auto is_empty = logits.detach().amax(-1, /*keepdim=*/true) == kMasked;
  if (!is_empty.any().item<bool>()) return rule(logits);
  // Filled before the rule and not after it alone: the gradient of NaNs would be NaN.
  return rule(logits.masked_fill(is_empty, 0)).masked_fill(is_empty, 0);
}

}  // namespace

Registry<SimplexMapEntry>& simplex_maps() {
  static Registry<SimplexMapEntry> registry("softmax");
  return registry;
}

void check_logits(const std::string& name, const torch::Tensor& logits) {
  check(logits.dim() >= 1 && logits.size(-1) > 0, name, ": logits must be [..., classes], got ",
        logits.sizes());
  check(logits.is_floating_point(), name, ": logits must be floating-point numbers, are ",
        logits.dtype());
}

SimplexMap simplex_map(const std::string& name, const SimplexMap& rule) {
  return [name, rule](const torch::Tensor& logits) {
    check_logits(name, logits);
    if (logits.numel() == 0) return logits;
    const auto type = logits.scalar_type();
    const bool is_half = type == torch::kBFloat16 || type == torch::kFloat16;
    return is_half ? shares_of(logits.to(torch::kFloat32), rule).to(type) : shares_of(logits, rule);
  };
}

torch::Tensor unmasked_counts(const torch::Tensor& logits) {
  return (logits.detach() != kMasked).sum(-1, /*keepdim=*/true).to(logits.scalar_type());
}

torch::Tensor scaled_logits(const torch::Tensor& logits, const torch::Tensor& factors) {
  const auto distances = logits - logits.detach().amax(-1, /*keepdim=*/true);
  return (distances * factors).masked_fill(logits.detach() == kMasked, kMasked);
}

}  // namespace kelvin
