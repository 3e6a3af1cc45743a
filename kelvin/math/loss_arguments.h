#pragma once

#include <torch/types.h>

namespace kelvin {

// Throws unless a loss can be made of these: logits [samples, classes] and at least one of each,
// labels [samples] of whole numbers in [0, classes), a temperature that is one number above 0.
// `where` opens the message.
void check_loss_arguments(const char* where, const torch::Tensor& logits,
                          const torch::Tensor& labels, const torch::Tensor& temperature);

}  // namespace kelvin
