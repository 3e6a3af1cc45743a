#include "kelvin/measures/probe_features.h"

#include <torch/types.h>

#include "kelvin/core/check.h"
#include "kelvin/math/layer_matrices.h"
#include "kelvin/math/pooled_features.h"

namespace kelvin {
namespace {

bool is_before_add(const LayerRecord& layer, ProbeTap tap) {
  return tap == ProbeTap::before_add && layer.before_add.defined();
}

const torch::Tensor& tapped(const LayerRecord& layer, ProbeTap tap) {
  return is_before_add(layer, tap) ? layer.before_add : layer.output;
}

}  // namespace

std::string tap_text(const LayerRecord& layer, ProbeTap tap) {
  return is_before_add(layer, tap) ? "after normalisation, before the residual add"
                                   : "after normalisation, residual add and activation";
}

std::string tap_text(ProbeTap tap) {
  return tap == ProbeTap::before_add
             ? "after normalisation, before the residual add where there is one"
             : "after normalisation, residual add and activation";
}

torch::Tensor flattened_rows(const LayerRecord& layer, ProbeTap tap) {
  return feature_rows(tapped(layer, tap)).to(torch::kFloat32).contiguous();
}

torch::Tensor pooled_rows(const LayerRecord& layer, ProbeTap tap, int64_t pool) {
  const auto rows = pooled_features(tapped(layer, tap), pool).to(torch::kFloat32);
  check(torch::isfinite(rows).all().item<bool>(), "linear_probe: features of layer '", layer.name,
        "' must be finite, hold NaN or infinity");
  return rows;
}

void check_labels(const Record& record) {
  const std::string whose = record.is_ood() ? record.ood : "the trained dataset";
  check(record.classes >= 2, "linear_probe: needs at least 2 classes, ", whose, " has ",
        record.classes);
  const auto& labels = record.labels;
  check(labels.dim() == 1 && labels.size(0) > 0 && !labels.is_floating_point(),
        "linear_probe: labels must be whole numbers, one for each sample, got ", labels.sizes());
  check(labels.min().item<int64_t>() >= 0 && labels.max().item<int64_t>() < record.classes,
        "linear_probe: labels of ", whose, " must be in [0, ", record.classes, "), go from ",
        labels.min().item<int64_t>(), " to ", labels.max().item<int64_t>());
}

void check_enough_samples(int64_t samples, int64_t classes) {
  check(samples >= classes, "linear_probe: needs at least as many training samples as classes, ",
        classes, ", got ", samples);
}

}  // namespace kelvin
