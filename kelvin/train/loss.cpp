#include "kelvin/train/loss.h"

namespace kelvin {
namespace {

const bool registered = losses().add(
    "cross_entropy",
    {
        .summary = "cross-entropy of softmax(logits / T)",
        .reference = "",
        .make =
            [](Settings&) {
              return [](const torch::Tensor& logits, const torch::Tensor& labels,
                        const torch::Tensor& temperature) {
                return tempered_cross_entropy(logits, labels, temperature);
              };
            },
    });

}  // namespace

Registry<LossEntry>& losses() {
  static Registry<LossEntry> registry("loss");
  return registry;
}

}  // namespace kelvin
