#include "kelvin/statistics/detection_curve.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

constexpr double kRecall = 0.95;

void check_scores(const std::vector<double>& scores, const char* which) {
  check(!scores.empty(), "detection: ", which, " must not be empty");
  check(std::none_of(scores.begin(), scores.end(), [](double score) { return std::isnan(score); }),
        "detection: ", which, " must be numbers, got a NaN");
}

std::vector<double> distinct_descending(const std::vector<double>& a,
                                        const std::vector<double>& b) {
  std::vector<double> all;
  all.reserve(a.size() + b.size());
  all.insert(all.end(), a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  std::sort(all.begin(), all.end(), std::greater<>());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<uint32_t> places_in(const std::vector<double>& descending,
                                const std::vector<double>& scores) {
  std::vector<uint32_t> places(scores.size());
  std::transform(scores.begin(), scores.end(), places.begin(), [&](double score) {
    const auto place =
        std::lower_bound(descending.begin(), descending.end(), score, std::greater<>());
    return static_cast<uint32_t>(place - descending.begin());
  });
  return places;
}

double total_of(const PlaceCounts& counts) {
  return static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
}

// Mann-Whitney: pairs in which ID is higher, half of those that tie.
double auroc(const PlaceCounts& id, const PlaceCounts& ood) {
  double wins = 0;
  double below = total_of(ood);
  for (size_t place = 0; place < id.size(); ++place) {
    const auto same = static_cast<double>(ood[place]);
    below -= same;
    wins += static_cast<double>(id[place]) * (below + 0.5 * same);
  }
  return wins / (total_of(id) * total_of(ood));
}

// Sum over distinct thresholds of (recall step) * precision, as scikit-learn's
// average_precision_score: no interpolation.
template <class Positive, class Negative>
double average_precision(Positive positive, Positive end, Negative negative, double positives) {
  double sum = 0;
  double recalled = 0;
  double wrong = 0;
  for (; positive != end; ++positive, ++negative) {
    const auto step = static_cast<double>(*positive);
    recalled += step;
    wrong += static_cast<double>(*negative);
    if (step > 0) sum += step * recalled / (recalled + wrong);
  }
  return sum / positives;
}

// Of the negatives, how many the strictest threshold accepts that keeps 95 % of the positives.
template <class Positive, class Negative>
double false_positive_rate(Positive positive, Negative negative, double positives,
                           double negatives) {
  const double wanted = std::ceil(kRecall * positives - 1e-9);
  double accepted = 0;
  for (double kept = 0; kept < wanted; ++positive, ++negative) {
    kept += static_cast<double>(*positive);
    accepted += static_cast<double>(*negative);
  }
  return accepted / negatives;
}

}  // namespace

DetectionCurve::DetectionCurve(const std::vector<double>& id_scores,
                               const std::vector<double>& ood_scores) {
  check_scores(id_scores, "ID scores");
  check_scores(ood_scores, "OOD scores");
  const auto descending = distinct_descending(id_scores, ood_scores);
  distinct_ = descending.size();
  id_places_ = places_in(descending, id_scores);
  ood_places_ = places_in(descending, ood_scores);
}

DetectionQuality DetectionCurve::quality() const {
  return quality_of(counts_of(id_places_, distinct_), counts_of(ood_places_, distinct_));
}

std::vector<RocPoint> DetectionCurve::roc() const {
  const auto id = counts_of(id_places_, distinct_);
  const auto ood = counts_of(ood_places_, distinct_);
  std::vector<RocPoint> points = {{}};
  points.reserve(distinct_ + 1);
  int64_t id_accepted = 0;
  int64_t ood_accepted = 0;
  for (size_t place = 0; place < distinct_; ++place) {
    id_accepted += id[place];
    ood_accepted += ood[place];
    points.push_back(
        {.ood_accepted =
             static_cast<double>(ood_accepted) / static_cast<double>(ood_places_.size()),
         .id_accepted = static_cast<double>(id_accepted) / static_cast<double>(id_places_.size())});
  }
  return points;
}

PlaceCounts counts_of(const std::vector<uint32_t>& places, size_t distinct) {
  PlaceCounts counts(distinct, 0);
  for (const auto place : places) ++counts[place];
  return counts;
}

DetectionQuality quality_of(const PlaceCounts& id, const PlaceCounts& ood) {
  const double ids = total_of(id);
  const double oods = total_of(ood);
  return {.auroc = auroc(id, ood),
          .aupr_in = average_precision(id.begin(), id.end(), ood.begin(), ids),
          .aupr_out = average_precision(ood.rbegin(), ood.rend(), id.rbegin(), oods),
          .fpr95_id = false_positive_rate(id.begin(), ood.begin(), ids, oods),
          .fpr95_ood = false_positive_rate(ood.rbegin(), id.rbegin(), oods, ids)};
}

}  // namespace kelvin
