#include <torch/types.h>

#include "kelvin/core/check.h"
#include "kelvin/ops/simplex_map.h"

namespace kelvin {
namespace {

// Softmax over the `count` largest logits, nothing for the others.  Of equal ones the first go
// first, on every machine: that takes a stable sort, which torch::topk is not.
torch::Tensor top_k(const torch::Tensor& logits, int64_t count) {
  const auto order =
      std::get<1>(torch::sort(logits.detach(), /*stable=*/true, /*dim=*/-1, /*descending=*/true));
  const auto largest = order.slice(-1, 0, count);
  const auto probabilities = torch::softmax(logits.gather(-1, largest), -1);
  return torch::zeros_like(logits).scatter(-1, largest, probabilities);
}

SimplexMap make(Settings& settings) {
  int64_t count = 8;
  settings.read("k", count);
  check(count >= 1, settings.full_name("k"), ": must be at least 1, got ", count);
  return simplex_map("top_k",
                     [count](const torch::Tensor& logits) { return top_k(logits, count); });
}

const bool top_k_registered =
    add_simplex_map("top_k", {
                                 .summary = "softmax over the k largest logits, 0 for the others",
                                 .reference = "Explicit sparse transformer, arXiv 1912.11637",
                                 .make = make,
                             });

}  // namespace
}  // namespace kelvin
