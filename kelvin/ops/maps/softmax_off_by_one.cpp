#include <torch/types.h>

#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/ops/simplex_map.h"

namespace kelvin {
namespace {

// exp(z) / (exp(sink) + sum exp(z)): a softmax with one logit more, whose weight is dropped.
SimplexMap make_softmax_off_by_one(Settings& settings) {
  double sink = 0;
  settings.read("sink", sink);
  check(std::isfinite(sink), settings.full_name("sink"), ": must be a finite number, got ", sink);
  return simplex_map(
      "softmax_off_by_one",
      [sink](const torch::Tensor& logits) {
        const auto more = torch::constant_pad_nd(logits, {0, 1}, sink);
        return torch::softmax(more, -1).slice(-1, 0, -1);
      },
      Constants::felt);
}

const bool softmax_off_by_one_registered = add_simplex_map(
    "softmax_off_by_one",
    {
        .summary = "exp(logit) / (exp(sink) + their sum): rows sum to less than 1, and to almost "
                   "nothing where all logits are low",
        .reference = "Miller, Attention is off by one, 2023, evanmiller.org",
        .make = make_softmax_off_by_one,
        .sums_to_one = false,
    });

}  // namespace
}  // namespace kelvin
