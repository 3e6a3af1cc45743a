#include "kelvin/ops/numerical_rank.h"

#include <torch/types.h>

#include "kelvin/core/check.h"
#include "kelvin/ops/libtorch.h"

namespace kelvin {
namespace {

void check_gamma(double gamma) {
  check(gamma > 0 && gamma < 1, "numerical_rank: gamma must be in (0, 1), got ", gamma);
}

// Of descending ones in the last dimension.
torch::Tensor counts_above(const torch::Tensor& singular_values, double gamma) {
  return (singular_values > gamma * singular_values.narrow(-1, 0, 1)).sum(-1);
}

}  // namespace

int64_t numerical_rank(const torch::Tensor& singular_values, double gamma) {
  check(singular_values.dim() == 1 && singular_values.size(0) > 0,
        "numerical_rank: needs a list of singular values, got ", singular_values.sizes());
  check_gamma(gamma);
  return counts_above(singular_values, gamma).item<int64_t>();
}

torch::Tensor numerical_ranks(const torch::Tensor& matrices, double gamma) {
  check(matrices.is_floating_point(),
        "numerical_rank: matrices must be of floating-point numbers, are ", matrices.dtype());
  if (has_sizes(matrices)) {
    check(matrices.dim() >= 2 && matrices.size(-1) > 0 && matrices.size(-2) > 0,
          "numerical_rank: needs matrices [..., rows, columns] with at least one number, got ",
          matrices.sizes());
  }
  check_gamma(gamma);
  const auto numbers = matrices.detach().to(torch::kFloat64);
  if (has_numbers(numbers)) {
    check(numbers.isfinite().all().item<bool>(),
          "numerical_rank: matrices must be finite, got a NaN or an infinity");
  }
  return counts_above(torch::linalg_svdvals(numbers), gamma);
}

}  // namespace kelvin
