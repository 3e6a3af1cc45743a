#pragma once

#include <torch/types.h>

#include "kelvin/math/tempered_cross_entropy.h"

namespace kelvin {

// log softmax(logits / temperature) of LibTorch's parts, differentiable in both: what losses are
// made of that have no kernel of their own.  In float32 at least.  Gradients stay finite where
// quotients would not: they end at -1e30.
torch::Tensor tempered_logs(const torch::Tensor& logits, const torch::Tensor& temperature);

// The values of a loss whose softmax has these logarithms.
LossValues described_loss(const torch::Tensor& sample_losses, const torch::Tensor& logs,
                          const torch::Tensor& logits);

}  // namespace kelvin
