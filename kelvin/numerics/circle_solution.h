#pragma once

#include <torch/types.h>

#include <cstdint>

namespace kelvin {

// Proposition 3.2 of Unpacking Softmax by a construction: class weights on a circle, w_k =
// (cos 2 pi k / c, sin 2 pi k / c), and for every sample of class y the features alpha w_y.  The
// logits alpha cos(2 pi (k - y) / c) have rank 2 and are largest at k = y, for any number c of
// classes and of samples.  Without a bias rank 1 has only two winners, so that this is the least.

// [classes, 2], in float64.
torch::Tensor circle_weights(int64_t classes);

// The probability of the true class at scale alpha.
double circle_probability(int64_t classes, double scale);

// The scale at which that probability is reached; it grows like the square of the classes.
// `probability` must be in (1 / classes, 1).
double circle_scale(int64_t classes, double probability);

// What a network that computes in `type` makes of the construction.
struct CircleCheck {
  int64_t rank = 0;                 // of the logits, above gamma = 1e-3 times sigma_1
  double beyond = 0;                // sigma_3 / sigma_1: 0 but for rounding
  double accuracy = 0;              // over the classes
  double smallest_probability = 0;  // of the true class
};
CircleCheck check_circle(int64_t classes, double scale, torch::ScalarType type);

}  // namespace kelvin
