#include "kelvin/numerics/top_eigenvectors.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

constexpr int64_t kBlocksInBasis = 16;  // before the basis is reduced to its best directions
constexpr int64_t kStepsPerCheck = 4;
constexpr double kTolerance = 1e-10;

TopEigenvectors from_all(const torch::Tensor& matrix, int64_t k) {
  const auto [values, vectors] = torch::linalg_eigh(matrix);
  return {.values = values.flip(0).slice(0, 0, k), .vectors = vectors.flip(1).slice(1, 0, k)};
}

// Orthonormal columns that span what `block` adds to `basis`.  What is within rounding of the basis
// becomes noise, which only the second pass makes orthogonal to it.
torch::Tensor orthonormal(const torch::Tensor& block, const torch::Tensor& basis) {
  auto result = block;
  for (int pass = 0; pass < 2; ++pass) {
    result = result - basis.matmul(basis.t().matmul(result));
    result = std::get<0>(torch::linalg_qr(result));
  }
  return result;
}

// An orthonormal basis that grows by a block per step, and what the matrix makes of it.
class KrylovBasis {
 public:
  KrylovBasis(const torch::Tensor& matrix, int64_t width, uint64_t seed) : matrix_(matrix) {
    const auto start = torch::randn(
        {matrix.size(0), width}, at::make_generator<at::CPUGeneratorImpl>(seed), torch::kFloat64);
    basis_ = last_ = std::get<0>(torch::linalg_qr(start));
    images_ = last_image_ = matrix_.matmul(last_);
  }

  int64_t size() const { return basis_.size(1); }

  // If it is larger than `limit` then, its best directions are all that is kept of the rest.
  void grow(int64_t limit) {
    last_ = orthonormal(last_image_, basis_);
    last_image_ = matrix_.matmul(last_);
    if (size() + last_.size(1) > limit) {
      const auto best = best_of_basis(2 * last_.size(1)).vectors;
      basis_ = basis_.matmul(best);
      images_ = images_.matmul(best);
    }
    basis_ = torch::cat({basis_, last_}, 1);
    images_ = torch::cat({images_, last_image_}, 1);
  }

  TopEigenvectors best(int64_t k) const {
    const auto inner = best_of_basis(k);
    return {.values = inner.values, .vectors = basis_.matmul(inner.vectors)};
  }

  bool is_converged(int64_t k) const {
    const auto inner = best_of_basis(k);
    const auto residuals =
        images_.matmul(inner.vectors) - basis_.matmul(inner.vectors) * inner.values;
    return residuals.norm(2, 0).max().item<double>() <=
           kTolerance * inner.values.abs().max().item<double>();
  }

 private:
  // The eigenvectors of the matrix restricted to the basis.
  TopEigenvectors best_of_basis(int64_t k) const {
    const auto restricted = basis_.t().matmul(images_);
    return from_all((restricted + restricted.t()) / 2, k);
  }

  torch::Tensor matrix_;
  torch::Tensor basis_;
  torch::Tensor images_;
  torch::Tensor last_;
  torch::Tensor last_image_;
};

// Squares of very large or small entries would leave the range of numbers; a power of two changes
// no digit.
double power_of_two_near(double size) { return size > 0 ? std::ldexp(1, std::ilogb(size)) : 1; }

TopEigenvectors top_of_scaled(const torch::Tensor& matrix, int64_t k,
                              const TopEigenvectorsOptions& options) {
  const auto dims = matrix.size(0);
  // Twice as wide as asked for: what lies just below the last wanted value slows convergence.
  const auto width = std::max<int64_t>(2 * k, 8);
  if (dims <= options.all_up_to || dims < 8 * width) return from_all(matrix, k);
  const auto limit = std::min(kBlocksInBasis * width, dims / 2);
  KrylovBasis basis(matrix, width, options.seed);
  for (int64_t step = 1; step < options.steps; ++step) {
    basis.grow(limit);
    if (step % kStepsPerCheck == 0 && basis.is_converged(k)) return basis.best(k);
  }
  return from_all(matrix, k);
}

}  // namespace

TopEigenvectors top_eigenvectors(const torch::Tensor& matrix, int64_t k,
                                 const TopEigenvectorsOptions& options) {
  check(matrix.dim() == 2 && matrix.size(0) == matrix.size(1),
        "top_eigenvectors: matrix must be square, got ", matrix.sizes());
  const auto dims = matrix.size(0);
  check(k >= 1 && k <= dims, "top_eigenvectors: k must be in [1, ", dims, "], got ", k);
  const auto doubles = matrix.to(torch::kFloat64);
  check(torch::isfinite(doubles).all().item<bool>(),
        "top_eigenvectors: matrix must be finite, has a NaN or an infinity");
  const auto scale = power_of_two_near(doubles.abs().max().item<double>());
  auto top = top_of_scaled(doubles / scale, k, options);
  return {.values = top.values * scale, .vectors = top.vectors};
}

}  // namespace kelvin
