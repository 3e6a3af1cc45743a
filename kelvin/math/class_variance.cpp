#include "kelvin/math/class_variance.h"

#include <torch/types.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/math/class_sums.h"

namespace kelvin {

ClassVariance::ClassVariance(const FeatureSketch& sketch, int64_t classes)
    : sketch_(sketch), exact_(sketch.dims()) {
  check(classes > 0, "ClassVariance: classes must be above 0, got ", classes);
  if (!sketch.is_exact()) projected_.emplace(sketch.width());
  class_sums_ = torch::zeros({classes, sketch.width()}, torch::kFloat64);
  class_counts_ = torch::zeros({classes}, torch::kFloat64);
}

void ClassVariance::update(const torch::Tensor& rows, const torch::Tensor& labels) {
  check(labels.dim() == 1 && rows.dim() == 2 && labels.size(0) == rows.size(0),
        "ClassVariance: rows and labels must be [rows, dims] and [rows], got ", rows.sizes(),
        " and ", labels.sizes());
  exact_.update(rows);
  const auto projected = sketch_.apply(rows);
  if (projected_) projected_->update(projected);
  // Never in place: copies share the tensors.
  class_sums_ = class_sums_.clone();
  add_class_sums(projected, labels, class_sums_);
  class_counts_ = class_counts_ + torch::bincount(labels, /*weights=*/{}, class_counts_.size(0));
}

void ClassVariance::merge(const ClassVariance& other) {
  check(sketch_.equals(other.sketch_) && class_counts_.sizes() == other.class_counts_.sizes(),
        "ClassVariance: can merge only one with the same sketch and classes");
  exact_.merge(other.exact_);
  if (projected_) projected_->merge(*other.projected_);
  class_sums_ = class_sums_ + other.class_sums_;
  class_counts_ = class_counts_ + other.class_counts_;
}

ClassVariance::Parts ClassVariance::parts() const {
  const auto total = exact_.total_variance();
  const auto count = static_cast<double>(samples());
  const auto mean = class_sums_.sum(0) / count;
  // A class without samples has any mean and no weight.
  const auto means = class_sums_ / class_counts_.clamp_min(1).unsqueeze(1);
  const auto distances = (means - mean).square().sum(1);
  const auto between = (class_counts_ * distances).sum().item<double>() / count;
  const auto all = projected_ ? projected_->total_variance() : total;
  const auto within = std::max(0.0, all - between);
  if (between + within == 0) return {};
  // The projection errs alike in both parts, the exact total in none.
  const auto scale = projected_ ? total / (between + within) : 1;
  return {.between = scale * between, .within = scale * within};
}

int64_t ClassVariance::bytes(int64_t dims, int64_t width, int64_t classes) {
  const auto sums = classes * (width + 1);
  const auto moments = 2 * (dims + (width < dims ? width : 0));
  return (sums + moments) * static_cast<int64_t>(sizeof(double));
}

}  // namespace kelvin
