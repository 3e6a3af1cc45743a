#pragma once

#include <torch/types.h>

namespace kelvin {

// A batch normalisation: its parameters, and statistics of the batches that it has seen.
struct BatchNorm {
  torch::Tensor weight;  // [channels]
  torch::Tensor bias;
  torch::Tensor running_mean;
  torch::Tensor running_variance;
  double momentum = 0.1;  // fraction of this batch in the running statistics
  double epsilon = 1e-5;
};

// Whether the functions below compute this one: float32 or bfloat16 maps in channels-last on
// a CPU.
bool suits_batch_norm_relu(const torch::Tensor& maps, const BatchNorm& norm);

// In training mode, so that running statistics are updated: relu(norm(maps) + added) in two passes
// forward and two backward, where LibTorch's own operations take twice as many; `added` may be
// undefined.  The result has the type of the maps, everything between them is float32.  Bits do not
// depend on the number of threads.
torch::Tensor batch_norm_relu(const torch::Tensor& maps, const BatchNorm& norm,
                              const torch::Tensor& added = {});

// In evaluation mode, by the running statistics and without gradients: one pass.
torch::Tensor running_norm_relu(const torch::Tensor& maps, const BatchNorm& norm,
                                const torch::Tensor& added = {});

}  // namespace kelvin
