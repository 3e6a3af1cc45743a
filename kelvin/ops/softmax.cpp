#include "kelvin/ops/softmax.h"

#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/ops/simplex_map.h"

namespace kelvin {
namespace {

// The maximum goes first and the division second: logits / T alone may overflow at small T.
torch::Tensor scaled(const torch::Tensor& logits, double temperature) {
  return (logits - logits.detach().amax(-1, /*keepdim=*/true)) / temperature;
}

const bool softmax_registered = add_simplex_map(
    "softmax", {
                   .summary = "exp(logit) over their sum: every probability is above 0",
                   .reference = "Attention is all you need, arXiv 1706.03762",
                   // LibTorch's own, which takes the maximum away itself.
                   .make =
                       [](Settings&) {
                         return simplex_map("softmax", [](const torch::Tensor& logits) {
                           return torch::softmax(logits, -1);
                         });
                       },
                   .one_pass = OnePassAttention::softmax,
               });

}  // namespace

void check_temperature(const char* where, double temperature) {
  check(std::isfinite(temperature) && temperature > 0, where,
        ": temperature must be a finite number above 0, got ", temperature);
}

torch::Tensor softmax(const torch::Tensor& logits, const SoftmaxOptions& options) {
  check_temperature("softmax", options.temperature);
  check_logits("softmax", logits);
  return torch::softmax(scaled(logits, options.temperature), -1);
}

torch::Tensor log_softmax(const torch::Tensor& logits, const SoftmaxOptions& options) {
  check_temperature("log_softmax", options.temperature);
  check_logits("log_softmax", logits);
  return torch::log_softmax(scaled(logits, options.temperature), -1);
}

}  // namespace kelvin
