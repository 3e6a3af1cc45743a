#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>

namespace kelvin {

// What neural collapse is measured by, as pure functions in double precision.  K vectors (class
// means, or rows of a classifier) mostly enter by their Gram matrix [K, K]; nothing is returned
// where a number is not defined, such as an angle of a zero vector.

// Eigenvalues of the between-class covariance up to this fraction of the largest count as zero: the
// rounding of float32 features reaches that far.
inline constexpr double kEigenvalueCutoff = 1e-12;
// Up to this fraction they are not known to six digits from float64 sums, and are never inverted.
inline constexpr double kEigenvalueRounding = 1e-20;

// (I - 11^T / K) / sqrt(K - 1): the Gram matrix of a simplex equiangular tight frame (ETF), scaled
// to Frobenius norm 1.
torch::Tensor simplex_etf(int64_t classes);

// | A / |A|_F - ETF |_F of a [K, K] matrix A: the Gram matrix of means or of weights, or the
// products of weights (rows) and means (columns).  None if A is zero or K is 1.
std::optional<double> etf_error(const torch::Tensor& products);

// Standard deviation (over K - 1) of the K lengths over their mean.  None if all are 0 or K is 1.
std::optional<double> equinorm(const torch::Tensor& gram);

// Mean over i != j of |cos_ij + 1 / (K - 1)|.  None if a vector is zero or K is 1.
std::optional<double> equiangularity(const torch::Tensor& gram);

// Variance (over their number) of the distances between all pairs of normalised vectors.  None if a
// vector is zero or K is 1.
std::optional<double> distance_variance(const torch::Tensor& gram);
// That of the logarithms of the distances; none also if two vectors have the same direction.
std::optional<double> log_distance_variance(const torch::Tensor& gram);
// That of the Riesz kernel sign(s) / distance^s with s = dims - 2, where vectors have `dims`
// entries (Liu and others, arXiv 2303.06484); none also if squares of it do not fit double
// precision.
std::optional<double> riesz_variance(const torch::Tensor& gram, int64_t dims);

// Tr(within * between^+) of symmetric positive [n, n] matrices, inverting eigenvalues above
// `cutoff` times the largest.  None if `between` is zero.
std::optional<double> trace_of_ratio(const torch::Tensor& within, const torch::Tensor& between,
                                     double cutoff = kEigenvalueCutoff);
// That of a diagonal `between` with these entries [n], all of which are inverted, however small.
// None if there are none or one is zero.
std::optional<double> trace_of_whole_ratio(const torch::Tensor& within,
                                           const torch::Tensor& between_diagonal);

// Class-distance normalised variance: mean over i != j of (v_i + v_j) / (2 |mu_i - mu_j|^2), of the
// mean squared distances v [K] to the means, whose Gram matrix may be that around any point.  None
// if two means are the same or K is 1.
std::optional<double> class_distance_variance(const torch::Tensor& variances,
                                              const torch::Tensor& gram);

// | A / |A|_F - B / |B|_F |_F.  None if one is zero.
std::optional<double> direction_difference(const torch::Tensor& a, const torch::Tensor& b);

// Variance over classes (over K - 1) of <w_c, m_c>, rows of both.  None if K is 1.
std::optional<double> dual_variance(const torch::Tensor& weight, const torch::Tensor& means);

// Mean over the rows of |cosine to `direction`|.  None if one of them is zero.
std::optional<double> mean_absolute_cosine(const torch::Tensor& rows,
                                           const torch::Tensor& direction);

}  // namespace kelvin
