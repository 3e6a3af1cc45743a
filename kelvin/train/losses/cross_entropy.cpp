#include <torch/types.h>

#include "kelvin/core/check.h"
#include "kelvin/train/loss.h"

namespace kelvin {
namespace {

Loss make_cross_entropy(Settings& settings) {
  CrossEntropyOptions options;
  settings.read("smoothing", options.smoothing);
  check(options.smoothing >= 0 && options.smoothing < 1, settings.full_name("smoothing"),
        ": must be in [0, 1), got ", options.smoothing);
  return {[options](const torch::Tensor& logits, const torch::Tensor& labels,
                    const torch::Tensor& temperature) {
    return tempered_cross_entropy(logits, labels, temperature, options);
  }};
}

const bool cross_entropy_registered = losses().add(
    "cross_entropy",
    {
        .summary =
            "cross-entropy of softmax(logits / T); spreads a fraction (smoothing) of the label",
        .reference = "smoothing: Rethinking the Inception architecture, arXiv 1512.00567",
        .make = make_cross_entropy,
    });

}  // namespace
}  // namespace kelvin
