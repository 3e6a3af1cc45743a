#pragma once

#include <torch/types.h>

#include <cstdint>

namespace kelvin {

// One row for each sample: maps [samples, channels, height, width] are averaged to at most
// pool x pool and flattened, tokens [samples, tokens, width] are averaged.  With pool 0 nothing is
// averaged, and everything is flattened.
torch::Tensor pooled_features(const torch::Tensor& output, int64_t pool);

}  // namespace kelvin
