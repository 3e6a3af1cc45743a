#include "kelvin/numerics/class_means.h"

#include <torch/types.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/kernels/instruction_sets.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

constexpr int64_t kRowBlock = 512;  // features whose sums stay in the nearest caches

KELVIN_VECTOR_CLONES void add(const float* from, int64_t count, double* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

KELVIN_VECTOR_CLONES void add(const double* from, int64_t count, double* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

// Every sum is made by one thread in the order of the rows, however many threads there are.
template <class Element>
void add_rows(const torch::Tensor& rows, const int64_t* classes, double* sums) {
  const auto* values = rows.data_ptr<Element>();
  const auto count = rows.size(0);
  const auto dims = rows.size(1);
  parallel_for(0, (dims + kRowBlock - 1) / kRowBlock, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const auto first = block * kRowBlock;
      const auto width = std::min(kRowBlock, dims - first);
      for (int64_t row = 0; row < count; ++row) {
        add(values + row * dims + first, width, sums + classes[row] * dims + first);
      }
    }
  });
}

}  // namespace

void add_class_sums(const torch::Tensor& rows, const torch::Tensor& labels, torch::Tensor& sums) {
  const auto dims = sums.size(1);
  check(rows.dim() == 2 && rows.size(1) == dims && labels.dim() == 1 &&
            labels.size(0) == rows.size(0),
        "add_class_sums: rows and labels must be [rows, ", dims, "] and [rows], got ", rows.sizes(),
        " and ", labels.sizes());
  check(sums.is_contiguous() && sums.scalar_type() == torch::kFloat64,
        "add_class_sums: sums must be float64 and contiguous");
  if (rows.size(0) == 0) return;
  check(labels.min().item<int64_t>() >= 0 && labels.max().item<int64_t>() < sums.size(0),
        "add_class_sums: labels must be in [0, ", sums.size(0), ")");
  const auto wholes = labels.to(torch::kInt64).contiguous();
  if (rows.scalar_type() == torch::kFloat32) {
    add_rows<float>(rows.contiguous(), wholes.data_ptr<int64_t>(), sums.data_ptr<double>());
  } else {
    add_rows<double>(rows.to(torch::kFloat64).contiguous(), wholes.data_ptr<int64_t>(),
                     sums.data_ptr<double>());
  }
}

ClassMeans class_means(const torch::Tensor& features, const torch::Tensor& labels,
                       int64_t classes) {
  check(features.dim() == 2 && features.size(0) > 0 && classes > 0,
        "class_means: features must be [samples, dims] of at least 1 sample and 1 class, got ",
        features.sizes(), " and ", classes, " classes");
  auto sums = torch::zeros({classes, features.size(1)}, torch::kFloat64);
  add_class_sums(features, labels, sums);
  const auto wholes = labels.to(torch::kInt64);
  const auto counts = torch::bincount(wholes, {}, classes).to(torch::kFloat64);
  const auto present = counts.nonzero().squeeze(1);
  ClassMeans result;
  result.counts = counts.index_select(0, present);
  result.means = sums.index_select(0, present) / result.counts.unsqueeze(1);
  const auto places =
      torch::zeros({classes}, torch::kInt64).scatter(0, present, torch::arange(present.size(0)));
  result.places = places.index_select(0, wholes);
  result.mean = sums.sum(0) / static_cast<double>(features.size(0));
  return result;
}

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
