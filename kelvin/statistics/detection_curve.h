#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kelvin {

// How well scores tell two populations apart.  In distribution is the positive
// class unless the name says otherwise; a higher score means in distribution.
struct DetectionQuality {
  double auroc = 0;      // probability that an ID score exceeds an OOD score, ties count half
  double aupr_in = 0;    // average precision, ID positive
  double aupr_out = 0;   // average precision of the negated scores, OOD positive
  double fpr95_id = 0;   // share of OOD accepted at the threshold that accepts 95 % of ID
  double fpr95_ood = 0;  // share of ID rejected at the threshold that rejects 95 % of OOD
};

// Shares of OOD and of ID that a threshold accepts.
struct RocPoint {
  double ood_accepted = 0;
  double id_accepted = 0;
};

// Two lists of scores by rank alone, so that any increasing map of the scores gives the same
// numbers.  Scores may be infinite; an Error if a list is empty or has a NaN.
class DetectionCurve {
 public:
  DetectionCurve(const std::vector<double>& id_scores, const std::vector<double>& ood_scores);

  DetectionQuality quality() const;

  // From (0, 0) to (1, 1), one point for each distinct score.
  std::vector<RocPoint> roc() const;

  // Of each sample: the place of its score among the distinct ones, the highest first.
  const std::vector<uint32_t>& id_places() const { return id_places_; }
  const std::vector<uint32_t>& ood_places() const { return ood_places_; }
  size_t distinct() const { return distinct_; }

 private:
  std::vector<uint32_t> id_places_;
  std::vector<uint32_t> ood_places_;
  size_t distinct_ = 0;
};

// How often each place is taken, the best score first.
using PlaceCounts = std::vector<int64_t>;

PlaceCounts counts_of(const std::vector<uint32_t>& places, size_t distinct);

// Both lists of the same length, with at least one sample each.
DetectionQuality quality_of(const PlaceCounts& id, const PlaceCounts& ood);

}  // namespace kelvin
