#pragma once

#include <torch/types.h>

namespace kelvin {

// A batch normalisation in training mode; its running statistics are updated.
struct BatchNorm {
  torch::Tensor weight;  // [channels]
  torch::Tensor bias;
  torch::Tensor running_mean;
  torch::Tensor running_variance;
  double momentum = 0.1;  // share of this batch in the running statistics
  double epsilon = 1e-5;
};

// Whether batch_norm_relu computes this one: float32 or bfloat16 maps in channels-last on
// a CPU.
bool suits_batch_norm_relu(const torch::Tensor& maps, const BatchNorm& norm);

// relu(norm(maps) + added) in two passes forward and two backward, where LibTorch's own operations
// take twice as many; `added` may be undefined.  The result has the type of the maps, everything
// between them is float32.  Bits do not depend on the number of threads.
torch::Tensor batch_norm_relu(const torch::Tensor& maps, const BatchNorm& norm,
                              const torch::Tensor& added = {});

}  // namespace kelvin
