#include <torch/types.h>

#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/ops/simplex_map.h"

namespace kelvin {
namespace {

// n^(s z) over its sum, for rows of n logits that are not masked: softmax of s ln n z.
SimplexMap make_ssmax(Settings& settings) {
  double scale = 0.43;  // what the paper's figure of the ideal scale shows
  settings.read("s", scale);
  check(std::isfinite(scale) && scale > 0, settings.full_name("s"),
        ": must be a finite number above 0, got ", scale);
  return simplex_map("ssmax", [scale](const torch::Tensor& logits) {
    return torch::softmax(scaled_logits(logits, scale * unmasked_counts(logits).log()), -1);
  });
}

const bool ssmax_registered = add_simplex_map(
    "ssmax", {
                 .summary = "scalable softmax: softmax of s * ln n * logits, over n logits",
                 .reference = "Scalable-softmax is superior for attention, arXiv 2501.19399",
                 .make = make_ssmax,
             });

}  // namespace
}  // namespace kelvin
