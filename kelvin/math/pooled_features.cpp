#include "kelvin/math/pooled_features.h"

#include <torch/types.h>

#include <algorithm>

#include "kelvin/core/check.h"

namespace kelvin {

torch::Tensor pooled_features(const torch::Tensor& output, int64_t pool) {
  check(output.dim() >= 2, "pooled_features: needs samples and features, got ", output.sizes());
  check(pool >= 0, "pooled_features: pool must not be below 0, got ", pool);
  if (pool == 0) return output.flatten(1);
  if (output.dim() == 3) return output.mean(1);
  if (output.dim() < 4) return output;
  const auto height = std::min(pool, output.size(2));
  const auto width = std::min(pool, output.size(3));
  return torch::adaptive_avg_pool2d(output, {height, width}).flatten(1);
}

}  // namespace kelvin
