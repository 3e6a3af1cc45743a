#pragma once

#include <cstdint>
#include <filesystem>

#include "kelvin/core/reading.h"
#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// Proposition 3.1 of Unpacking Softmax: the gap between the singular values of a column-wise
// softmax, beside its bound.
struct SingularGapRequest {
  static constexpr auto kTask = "theory_prop31";
  using Result = Readings;

  // A run, whose test logits at its temperature are looked at, or an npz with `logits` and perhaps
  // `temperature`; neither: random matrices, and the two extremes.
  std::filesystem::path run = {};
  std::filesystem::path dump = {};
  Config settings = {};  // of a run, as of MeasureRequest
  int64_t samples = 0;   // of a run or a dump, the first ones; 0: all
  int64_t matrices = 10'000;
  int64_t least_size = 2;  // random matrices are square
  int64_t most_size = 64;
  int64_t seed = 0;
};

// Readings singular_gap, singular_gap_bound and column_similarity (r) of each given matrix, of the
// extremes by their `case`, and of random ones as means by decade of their scale; with
// singular_gap_violations and singular_gap_slack of all random matrices.
Readings theory_prop31(const SingularGapRequest& request, const RunContext& context);

}  // namespace kelvin
