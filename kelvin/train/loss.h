#pragma once

#include <torch/types.h>

namespace kelvin {

// Mean cross-entropy of softmax(logits / temperature): logits [samples, classes],
// labels [samples].  Differentiable.
torch::Tensor cross_entropy(const torch::Tensor& logits, const torch::Tensor& labels,
                            double temperature);

}  // namespace kelvin
