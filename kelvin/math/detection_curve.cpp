#include "kelvin/math/detection_curve.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

using Doubles = std::vector<double>;

Doubles sorted_doubles(const torch::Tensor& scores, const char* which) {
  check(scores.dim() == 1 && scores.size(0) > 0, "detection_quality: ", which,
        " must be [samples], got ", scores.sizes());
  const auto values = scores.to(torch::kCPU, torch::kFloat64).contiguous();
  check(torch::isfinite(values).all().item<bool>(), "detection_quality: ", which,
        " must be finite, got a NaN or an infinity");
  Doubles list(values.data_ptr<double>(), values.data_ptr<double>() + values.size(0));
  std::sort(list.begin(), list.end());
  return list;
}

// Mann-Whitney: pairs in which the positive is higher, half of those that tie.
double auroc(const Doubles& positives, const Doubles& negatives) {
  double wins = 0;
  for (const double score : positives) {
    const auto [below, above] = std::equal_range(negatives.begin(), negatives.end(), score);
    wins +=
        static_cast<double>(below - negatives.begin()) + 0.5 * static_cast<double>(above - below);
  }
  return wins / (static_cast<double>(positives.size()) * static_cast<double>(negatives.size()));
}

double count_at_least(const Doubles& ascending, double threshold) {
  return static_cast<double>(ascending.end() -
                             std::lower_bound(ascending.begin(), ascending.end(), threshold));
}

// Sum over distinct thresholds of (recall step) * precision, as scikit-learn's
// average_precision_score: no interpolation.
double average_precision(const Doubles& positives, const Doubles& negatives) {
  double sum = 0;
  double recalled_before = 0;
  for (auto score = positives.rbegin(); score != positives.rend(); ++score) {
    if (score != positives.rbegin() && *score == *std::prev(score)) continue;
    const double recalled = count_at_least(positives, *score);
    const double precision = recalled / (recalled + count_at_least(negatives, *score));
    sum += (recalled - recalled_before) * precision;
    recalled_before = recalled;
  }
  return sum / static_cast<double>(positives.size());
}

// The largest threshold that keeps at least 95 % of the positives, and how many negatives it keeps.
double false_positive_rate(const Doubles& positives, const Doubles& negatives) {
  const auto count = static_cast<double>(positives.size());
  const auto kept = static_cast<size_t>(std::ceil(0.95 * count - 1e-9));
  const double threshold = positives[positives.size() - kept];
  return count_at_least(negatives, threshold) / static_cast<double>(negatives.size());
}

Doubles negated(const Doubles& ascending) {
  Doubles list(ascending.rbegin(), ascending.rend());
  std::transform(list.begin(), list.end(), list.begin(), std::negate<>());
  return list;
}

}  // namespace

DetectionQuality detection_quality(const torch::Tensor& id_scores,
                                   const torch::Tensor& ood_scores) {
  const auto id = sorted_doubles(id_scores, "id_scores");
  const auto ood = sorted_doubles(ood_scores, "ood_scores");
  const auto id_negated = negated(id);
  const auto ood_negated = negated(ood);
  return {.auroc = auroc(id, ood),
          .aupr_in = average_precision(id, ood),
          .aupr_out = average_precision(ood_negated, id_negated),
          .fpr95_id = false_positive_rate(id, ood),
          .fpr95_ood = false_positive_rate(ood_negated, id_negated)};
}

}  // namespace kelvin
