#include "kelvin/numerics/post_softmax.h"

#include <ATen/CPUGeneratorImpl.h>

#include "kelvin/core/check.h"
#include "kelvin/ops/numerical_rank.h"

namespace kelvin {

torch::Tensor low_rank_matrix(int64_t n, int64_t k, uint64_t seed) {
  check(n >= 1 && k >= 1, "low_rank_matrix: n and k must be at least 1, got ", n, " and ", k);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto uniform = [&] { return torch::rand({n, k}, generator, torch::kFloat64) * 2 - 1; };
  const auto left = uniform();
  return left.matmul(uniform().t());
}

torch::Tensor column_softmax(const torch::Tensor& matrix) {
  check(matrix.dim() == 2 && matrix.numel() > 0, "column_softmax: needs a matrix, got ",
        matrix.sizes());
  return torch::softmax(matrix.to(torch::kFloat64), 0);
}

PostSoftmax post_softmax(const torch::Tensor& matrix, double gamma) {
  check(matrix.dim() == 2 && matrix.size(0) > 0 && matrix.size(1) > 1,
        "post_softmax: needs a matrix of at least two columns, got ", matrix.sizes());
  check(gamma > 0 && gamma < 1, "post_softmax: gamma must be in (0, 1), got ", gamma);
  const auto probabilities = column_softmax(matrix);
  check(torch::isfinite(probabilities).all().item<bool>(),
        "post_softmax: the matrix must be finite");
  const auto columns = static_cast<double>(matrix.size(1));
  // The squared norm of the sum of unit vectors has each pair twice, and each with itself.
  const auto units = probabilities / probabilities.norm(2, {0}, /*keepdim=*/true);
  const auto all_pairs = units.sum(1).square().sum().item<double>();
  const auto winners = std::get<0>(torch::_unique(probabilities.argmax(0)));
  return {.rank = numerical_rank(torch::linalg_svdvals(probabilities), gamma),
          .norm = matrix.to(torch::kFloat64).norm().item<double>(),
          .column_cosine = (all_pairs - columns) / (columns * (columns - 1)),
          .top_weight = probabilities.amax(0).mean().item<double>(),
          .distinct_argmaxes = winners.size(0)};
}

}  // namespace kelvin
