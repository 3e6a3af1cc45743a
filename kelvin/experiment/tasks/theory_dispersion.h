#pragma once

#include <cstdint>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// What a spread of logits allows a softmax over n of them to do, see kelvin/numerics/dispersion.h.
struct DispersionRequest {
  static constexpr auto kTask = "theory_dispersion";
  using Result = Readings;

  // 5.69 and 5.82 are the means over the heads of Gemma 2B and 7B on some 4000 tokens.
  std::vector<double> spreads = {2, 5.69, 5.82, 10};
  std::vector<int64_t> lengths = {16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
  double temperature = 1;
};

// Of each spread dispersion_length, from which on no weight can be above one half; and of each
// length weight_bound, with the `bound` lemma or sharp and the `side` low or high, and
// entropy_bound.
Readings theory_dispersion(const DispersionRequest& request, const RunContext& context);

}  // namespace kelvin
