#pragma once

#include <torch/types.h>

namespace kelvin {

struct SoftmaxOptions {
  double temperature = 1;  // above 0; the logits are divided by it
};

// softmax_T(e)_k = exp(e_k / T) / sum_j exp(e_j / T) over the last dimension.
torch::Tensor softmax(const torch::Tensor& logits, const SoftmaxOptions& options = {});

// Its logarithm, without overflow for logits of any size.
torch::Tensor log_softmax(const torch::Tensor& logits, const SoftmaxOptions& options = {});

// Throws unless 0 < temperature < infinity; `where` opens the message.
void check_temperature(const char* where, double temperature);

}  // namespace kelvin
