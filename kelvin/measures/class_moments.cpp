#include "kelvin/measures/class_moments.h"

#include <torch/types.h>

#include "kelvin/core/check.h"
#include "kelvin/numerics/class_means.h"

namespace kelvin {
namespace {

constexpr double kMomentRounding = 1e-13;  // of float64 sums, relative to a mean

void check_rows(const char* where, const torch::Tensor& rows, const torch::Tensor& labels,
                int64_t dims) {
  check(rows.dim() == 2 && rows.size(1) == dims, where, ": rows must be [rows, ", dims, "], got ",
        rows.sizes());
  check(labels.dim() == 1 && labels.size(0) == rows.size(0), where, ": labels must be [",
        rows.size(0), "], got ", labels.sizes());
}

}  // namespace

ClassSums::ClassSums(int64_t classes, int64_t dims) {
  check(classes > 0 && dims > 0, "ClassSums: classes and dims must be above 0, got ", classes,
        " and ", dims);
  sums_ = torch::zeros({classes, dims}, torch::kFloat64);
  counts_ = torch::zeros({classes}, torch::kFloat64);
}

void ClassSums::update(const torch::Tensor& rows, const torch::Tensor& labels) {
  check_rows("ClassSums", rows, labels, dims());
  // Never in place: copies share the tensors.
  sums_ = sums_.clone();
  add_class_sums(rows, labels, sums_);
  counts_ = counts_ + torch::bincount(labels, /*weights=*/{}, classes());
}

void ClassSums::merge(const ClassSums& other) {
  check(sums_.sizes() == other.sums_.sizes(), "ClassSums: can merge only the same shape, ",
        sums_.sizes(), ", got ", other.sums_.sizes());
  sums_ = sums_ + other.sums_;
  counts_ = counts_ + other.counts_;
}

int64_t ClassSums::samples() const { return counts_.sum().item<int64_t>(); }

ClassCentres::ClassCentres(const ClassSums& sums) {
  classes = sums.counts().nonzero().squeeze(1);
  check(size() > 0, "ClassCentres: needs at least one sample, got none");
  counts = sums.counts().index_select(0, classes);
  centred = sums.sums().index_select(0, classes).div_(counts.unsqueeze(1));
  mean = centred.mean(0);
  centred.sub_(mean);
  // All means are the same but for the rounding of their sums.
  if (centred.norm().item<double>() <= kMomentRounding * mean.norm().item<double>())
    centred.zero_();
}

int64_t ClassCentres::samples() const { return counts.sum().item<int64_t>(); }

torch::Tensor ClassCentres::sample_mean() const { return counts.matmul(centred) / counts.sum(); }

ClassSpread::ClassSpread(const ClassCentres& centres, double cutoff)
    : centres_(centres), gram_(centres.gram()) {
  // Of a wide matrix the triangular factor has the same singular values and left vectors.
  const auto factor = std::get<1>(torch::linalg_qr(centres.centred.t(), "r"));
  const auto [unused, values, rows] = torch::linalg_svd(factor, /*full_matrices=*/false);
  const auto squares = values.square();
  const auto count = (squares > cutoff * squares.max()).sum().item<int64_t>();
  left_ = rows.narrow(0, 0, count).t().contiguous();
  lengths_ = values.narrow(0, 0, count).contiguous();
  products_ = torch::zeros({count, count}, torch::kFloat64);
  squares_ = torch::zeros({centres.size()}, torch::kFloat64);
  counts_ = torch::zeros({centres.size()}, torch::kFloat64);
}

torch::Tensor ClassSpread::update(const torch::Tensor& rows, const torch::Tensor& labels) {
  check_rows("ClassSpread", rows, labels, centres_.mean.size(0));
  const auto places = torch::searchsorted(centres_.classes, labels).clamp_max(centres_.size() - 1);
  check(centres_.classes.index_select(0, places).equal(labels),
        "ClassSpread: the second pass must show the samples of the first, has a class that had "
        "none");
  auto deviations = rows.to(torch::kFloat64) - centres_.mean;
  deviations.sub_(centres_.centred.index_select(0, places));
  const auto products = deviations.matmul(centres_.centred.t());
  const auto along = products.matmul(left_ / lengths_);
  products_ = products_ + along.t().matmul(along);
  squares_ = squares_.index_add(0, places, deviations.square_().sum(1));
  counts_ = counts_ + torch::bincount(places, /*weights=*/{}, centres_.size());
  return nearest_places(products + gram_.index_select(0, places));
}

torch::Tensor ClassSpread::nearest(const torch::Tensor& rows) const {
  const auto centred = rows.to(torch::kFloat64) - centres_.mean;
  return nearest_places(centred.matmul(centres_.centred.t()));
}

// Of the products <h, m_c> [rows, K]: |h - m_c|^2 is smallest where |m_c|^2 - 2 <h, m_c> is.
torch::Tensor ClassSpread::nearest_places(const torch::Tensor& products) const {
  const auto places = (gram_.diagonal() - 2 * products).argmin(1);
  return centres_.classes.index_select(0, places);
}

void ClassSpread::merge(const ClassSpread& other) {
  check(centres_.classes.equal(other.centres_.classes) &&
            centres_.mean.equal(other.centres_.mean) &&
            centres_.centred.equal(other.centres_.centred),
        "ClassSpread: can merge only what was measured around the same class means");
  products_ = products_ + other.products_;
  squares_ = squares_ + other.squares_;
  counts_ = counts_ + other.counts_;
}

int64_t ClassSpread::samples() const { return counts_.sum().item<int64_t>(); }

double ClassSpread::total_within() const {
  return squares_.sum().item<double>() / counts_.sum().item<double>();
}

}  // namespace kelvin
