#include <torch/types.h>

#include <limits>

#include "kelvin/ops/simplex_map.h"

namespace kelvin {
namespace {

// sigmoid(z_i) times sigmoid(-z_k) of all k behind i: from the last logit on, each takes its part
// of what those behind it left over.
torch::Tensor stick_breaking(const torch::Tensor& logits) {
  const auto is_masked = logits.detach() == -std::numeric_limits<double>::infinity();
  const auto z = logits.masked_fill(is_masked, 0);
  const auto left_over = torch::log_sigmoid(-z).masked_fill(is_masked, 0);
  const auto from_here_on = left_over.flip(-1).cumsum(-1).flip(-1);
  const auto behind = torch::constant_pad_nd(from_here_on, {0, 1}).slice(-1, 1);
  return (torch::log_sigmoid(z) + behind).exp().masked_fill(is_masked, 0);
}

const bool stick_breaking_registered = add_simplex_map(
    "stick_breaking",
    {
        .summary = "from the last logit on, each takes sigmoid(logit) of what is left: the order "
                   "matters, rows sum to at most 1",
        .reference = "Scaling stick-breaking attention, arXiv 2410.17980",
        .make =
            [](Settings&) {
              return simplex_map("stick_breaking", stick_breaking, Constants::felt);
            },
        .sums_to_one = false,
    });

}  // namespace
}  // namespace kelvin
