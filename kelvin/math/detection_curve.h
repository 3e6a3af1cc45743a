#pragma once

#include <torch/types.h>

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

// Both [n], finite; computed in double precision by ranks, so any monotone map
// of the scores gives the same numbers.
DetectionQuality detection_quality(const torch::Tensor& id_scores, const torch::Tensor& ood_scores);

}  // namespace kelvin
