#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/core/settings.h"
#include "kelvin/measures/feature_spectrum.h"
#include "kelvin/model/record.h"

namespace kelvin {

// An Error unless `gamma`, the setting of that name, is a share of the largest singular value.
void check_gamma(const Settings& settings, double gamma);

// The thresholds at which a numerical rank is reported: the chosen one first.
std::vector<double> reported_gammas(double gamma);

// The logits in double precision; an Error, with `measure` before it, if one is not finite.
torch::Tensor finite_logits(const Record& record, const char* measure);

// The ranks of a matrix that need no threshold, from its singular values in any order:
// effective_rank, rankme, stable_rank and participation_ratio.  Each is `like` with another name
// (after `prefix`), its value and its formula in the definition.  None of a zero matrix, of which
// they are undefined.
Readings rank_readings(const torch::Tensor& singular_values, const Reading& like,
                       const std::string& prefix = "");

// The spectrum of one layer's outputs, and how it was come by.
struct LayerValues {
  std::string layer;
  std::string protocol;
  SpectrumValues values = {};  // of the centred matrix [samples, features]
  int64_t samples = 0;
  int64_t features = 0;
  int64_t width = 0;    // features that were used, or numbers that they were projected to
  int64_t anchors = 0;  // of these, directions that were kept
  bool is_sketched = false;
  bool has_rounded_anchors = false;  // multiplied in bfloat16
};

// Eigenvalues of the covariance above gamma times the largest.
int64_t covariance_rank(const LayerValues& values, double gamma);

// Between which ranks the true one lies by what is known of random projections to first order, and
// whether these are close: what falls on a rank from above and what rises to it from below.
struct RankBounds {
  int64_t low = 0;
  int64_t high = 0;
  bool is_reliable = true;
};
RankBounds rank_bounds(const LayerValues& values, double gamma);

// Ranks with and without threshold, and the `top` first singular values.
Readings spectrum_readings(const LayerValues& values, double gamma, int64_t top);

}  // namespace kelvin
