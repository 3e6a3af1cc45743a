#include "kelvin/math/class_means.h"

#include <torch/types.h>

#include "kelvin/core/check.h"
#include "kelvin/math/class_sums.h"

namespace kelvin {

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

}  // namespace kelvin
