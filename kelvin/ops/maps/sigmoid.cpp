#include <torch/types.h>

#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/ops/simplex_map.h"

namespace kelvin {
namespace {

// sigmoid(z + b) of each logit by itself.  With b = -ln n, over n logits that are not masked, equal
// logits near 0 sum to almost 1.
SimplexMap make_sigmoid(Settings& settings) {
  double bias = 0;
  bool has_length_bias = true;
  settings.read("bias", bias);
  settings.read("length_bias", has_length_bias);
  check(std::isfinite(bias), settings.full_name("bias"), ": must be a finite number, got ", bias);
  return simplex_map(
      "sigmoid",
      [=](const torch::Tensor& logits) {
        const auto biased = logits + bias;
        return torch::sigmoid(has_length_bias ? biased - unmasked_counts(logits).log() : biased);
      },
      Constants::felt);
}

const bool sigmoid_registered = add_simplex_map(
    "sigmoid",
    {
        .summary = "sigmoid(logits + bias - ln n) of each by itself: no distribution, sums may be "
                   "anything from 0 to n",
        .reference = "Theory, analysis and best practices for sigmoid self-attention, arXiv "
                     "2409.04431",
        .make = make_sigmoid,
        .sums_to_one = false,
    });

}  // namespace
}  // namespace kelvin
