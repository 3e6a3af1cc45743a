#include <torch/types.h>

#include "kelvin/ops/entmax.h"
#include "kelvin/ops/simplex_map.h"

namespace kelvin {
namespace {

SimplexMap make_alpha_entmax(Settings& settings) {
  double alpha = 1.5;
  settings.read("alpha", alpha);
  check_alpha(settings.full_name("alpha").c_str(), alpha);
  return simplex_map("alpha_entmax",
                     [alpha](const torch::Tensor& logits) { return alpha_entmax(logits, alpha); });
}

const bool alpha_entmax_registered = add_simplex_map(
    "alpha_entmax",
    {
        .summary = "entmax of any alpha above 1: the larger it is, the more weights are exactly 0",
        .reference = "Sparse sequence-to-sequence models, arXiv 1905.05702",
        .make = make_alpha_entmax,
    });

}  // namespace
}  // namespace kelvin
