#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// Proposition 3.2 of Unpacking Softmax: classifiers whose logits have rank 2 and that are right on
// every training image.
struct RankTwoRequest {
  static constexpr auto kTask = "theory_prop32";
  using Result = Readings;

  std::filesystem::path run = {};  // a trained network to look at; empty: the circle construction
  Config settings = {};            // of a run, as of MeasureRequest
  std::vector<int64_t> classes = {10, 100, 1000};
  std::vector<double> probabilities = {0.5, 0.9, 0.99};  // that the true class is to reach
};

// Of the construction circle_scale, the scale that a probability needs, and what float32 makes of
// it: solution_rank, accuracy, smallest_true_probability.  Of a run the same over all of its
// training images as they are, with samples_below_half: how many have a true class of at most 1/2.
Readings theory_prop32(const RankTwoRequest& request, const RunContext& context);

}  // namespace kelvin
