#pragma once

#include <cstdint>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// Figure 6 of Unpacking Softmax: the rank of softmax(c M) by columns over the scale c, for random
// M = A B^T of rank k.
struct Figure6Request {
  static constexpr auto kTask = "theory_fig6";
  using Result = Readings;

  int64_t n = 30;                   // rows and columns of M
  int64_t most_rank = 5;            // k = 1 to this
  int64_t draws = 5;                // of M for each k
  double gamma = 1e-3;              // of the numerical rank
  std::vector<double> scales = {};  // empty: four in every decade from 0.1 to 10 000
  int64_t seed = 0;
};

// Of each k and scale the means over the draws, from the smallest to the largest as their interval:
// post_softmax_rank, logits_norm, column_cosine, column_top_weight; and of each k
// distinct_argmaxes, where the rank ends at a large scale.
Readings theory_fig6(const Figure6Request& request, const RunContext& context);

}  // namespace kelvin
