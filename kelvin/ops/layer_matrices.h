#pragma once

#include <torch/types.h>

#include <cstdint>

namespace kelvin {

struct ConvolutionGeometry {
  int64_t stride = 1;
  int64_t padding = 0;
};

// A weight layer as the matrix product it is, so that W * A + bias is what the layer makes of its
// input, column by column.

// W [out, in], or [out, in * kernel height * kernel width] of a convolution.
torch::Tensor weight_matrix(const torch::Tensor& weight);

// A [in, positions]: one column for each sample or token of `input` [..., in]; of a convolution
// [in * kernel height * kernel width, samples * positions], the unfolded patches, ordered by sample
// and then row by row.
torch::Tensor input_matrix(const torch::Tensor& weight, const torch::Tensor& input,
                           const ConvolutionGeometry& geometry = {});

// What the layer made, [..., out] or [samples, out, height, width], in the same order of columns:
// [out, positions].
torch::Tensor product_matrix(const torch::Tensor& weight, const torch::Tensor& product);

// What a layer hands on, one row per sample: [samples, features].  Maps are ordered position by
// position, all channels of each, as they lie in memory; tokens token by token.
torch::Tensor feature_rows(const torch::Tensor& output);

// One row for each sample: maps [samples, channels, height, width] are averaged to at most
// pool x pool and flattened, tokens [samples, tokens, width] are averaged.  With pool 0 nothing is
// averaged, and everything is flattened.
torch::Tensor pooled_features(const torch::Tensor& output, int64_t pool);

}  // namespace kelvin
