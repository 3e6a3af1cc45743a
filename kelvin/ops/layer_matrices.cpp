#include "kelvin/ops/layer_matrices.h"

#include <torch/types.h>

#include <algorithm>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

bool is_convolution(const torch::Tensor& weight) {
  check(weight.dim() == 2 || weight.dim() == 4,
        "layer matrices: weight must have 2 or 4 dimensions, has ", weight.dim());
  return weight.dim() == 4;
}

}  // namespace

torch::Tensor weight_matrix(const torch::Tensor& weight) {
  return is_convolution(weight) ? weight.flatten(1) : weight;
}

torch::Tensor input_matrix(const torch::Tensor& weight, const torch::Tensor& input,
                           const ConvolutionGeometry& geometry) {
  if (!is_convolution(weight)) {
    check(input.size(-1) == weight.size(1), "layer matrices: input must end in ", weight.size(1),
          ", is ", input.sizes());
    return input.reshape({-1, input.size(-1)}).t();
  }
  check(input.dim() == 4 && input.size(1) == weight.size(1),
        "layer matrices: input must be [samples, ", weight.size(1), ", height, width], is ",
        input.sizes());
  // [samples, in * kernel, positions]
  const auto patches =
      at::im2col(input, weight.sizes().slice(2), /*dilation=*/{1, 1},
                 {geometry.padding, geometry.padding}, {geometry.stride, geometry.stride});
  return patches.transpose(0, 1).reshape({patches.size(1), -1});
}

torch::Tensor product_matrix(const torch::Tensor& weight, const torch::Tensor& product) {
  if (!is_convolution(weight)) return product.reshape({-1, product.size(-1)}).t();
  return product.transpose(0, 1).reshape({product.size(1), -1});
}

torch::Tensor feature_rows(const torch::Tensor& output) {
  check(output.dim() >= 2, "layer matrices: output must have samples and features, is ",
        output.sizes());
  return output.dim() == 4 ? output.permute({0, 2, 3, 1}).flatten(1) : output.flatten(1);
}

torch::Tensor pooled_features(const torch::Tensor& output, int64_t pool) {
  check(output.dim() >= 2, "pooled_features: needs samples and features, got ", output.sizes());
  check(pool >= 0, "pooled_features: pool must not be below 0, got ", pool);
  if (pool == 0) return output.flatten(1);
  if (output.dim() == 3) return output.mean(1);
  if (output.dim() < 4) return output;
  const auto height = std::min(pool, output.size(2));
  const auto width = std::min(pool, output.size(3));
  return torch::adaptive_avg_pool2d(output, {height, width}).flatten(1);
}

}  // namespace kelvin
