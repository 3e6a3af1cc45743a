#include "kelvin/ops/simplex_map.h"

#include <limits>

#include "kelvin/core/check.h"
#include "kelvin/ops/libtorch.h"
#include "kelvin/ops/map_operator.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

torch::Tensor shares_of(const torch::Tensor& logits, const SimplexRule& rule) {
  const auto is_empty = logits.detach().amax(-1, /*keepdim=*/true) == kMasked;
  // On other devices, asking would wait for all that is computed before.
  const bool may_ask = logits.is_cpu() && has_numbers(logits);
  if (may_ask && !is_empty.any().item<bool>()) return rule(logits);
  // Filled before the rule and not after it alone: the gradient of NaNs would be NaN.
  return rule(logits.masked_fill(is_empty, 0)).masked_fill(is_empty, 0);
}

// Finite logits stay finite, and masked ones masked.
torch::Tensor divided(const torch::Tensor& logits, double temperature, Constants constants) {
  if (temperature == 1) return logits;
  constexpr double kMost = 1e30;
  const auto is_masked = logits.detach() == kMasked;
  auto distances = logits;
  if (constants == Constants::ignored) {
    const auto largest = logits.detach().amax(-1, /*keepdim=*/true);
    distances = logits - largest.masked_fill(largest == kMasked, 0);
  }
  return (distances / temperature).clamp(-kMost, kMost).masked_fill(is_masked, kMasked);
}

}  // namespace

Registry<SimplexMapEntry>& simplex_maps() {
  static Registry<SimplexMapEntry> registry("softmax");
  return registry;
}

bool add_simplex_map(const std::string& name, const SimplexMapEntry& entry) {
  simplex_maps().add(name, entry);
  define_map_operator(entry.operator_name.empty() ? name : entry.operator_name, entry);
  return true;
}

void check_logits(const std::string& name, const torch::Tensor& logits) {
  if (has_sizes(logits)) {
    check(logits.dim() >= 1 && logits.size(-1) > 0, name, ": logits must be [..., classes], got ",
          logits.sizes());
  }
  check(logits.is_floating_point(), name, ": logits must be floating-point numbers, are ",
        logits.dtype());
}

SimplexMap simplex_map(const std::string& name, const SimplexRule& rule, Constants constants) {
  return [=](const torch::Tensor& logits, double temperature) {
    check_logits(name, logits);
    check_temperature(name.c_str(), temperature);
    if (has_sizes(logits) && logits.numel() == 0) return logits.clone();
    const auto type = logits.scalar_type();
    const bool is_half = type == torch::kBFloat16 || type == torch::kFloat16;
    const auto numbers = is_half ? logits.to(torch::kFloat32) : logits;
    return shares_of(divided(numbers, temperature, constants), rule).to(type);
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
