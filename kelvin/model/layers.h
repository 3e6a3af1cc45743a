#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <string>

#include "kelvin/model/model.h"
#include "kelvin/ops/attention.h"

namespace kelvin {

// A convolution that keeps the size of its maps at stride 1.
torch::nn::Conv2d same_convolution(int64_t inputs, int64_t outputs, int64_t kernel,
                                   int64_t stride = 1, bool has_bias = false);

// Whether images are as large as ImageNet's: networks for those shrink them before they work.
bool is_large(const ModelShape& shape);

// The setting `key`, imagenet or cifar, which follows the image size if it is not set.
bool read_is_for_imagenet(Settings& settings, const std::string& key, const ModelShape& shape);

// An Error unless `dropout`, the setting of that name, is a share of units that may be left out.
void check_dropout(const Settings& settings, double dropout);

// What a layer itself makes of its input, in the precision of the moment (see precision.h).
torch::Tensor product_of(const torch::nn::Conv2d& layer, const torch::Tensor& input);
torch::Tensor product_of(const torch::nn::Linear& layer, const torch::Tensor& input);
// factor * left right of the matrices of all heads, [samples, heads, ...]; in `rows` order, heads
// of a token lie together where that costs nothing.
torch::Tensor product_of(const torch::Tensor& left, const torch::Tensor& right, double factor,
                         ProductOrder order);

// Whether softmax attention of these queries, keys and values is to be computed by
// bfloat16_attention.
bool suits_one_pass_attention(const torch::Tensor& qkv, int64_t heads);

// relu(norm(product) + added), in few passes where that is possible; `added` may be undefined.
torch::Tensor normed_relu(torch::nn::BatchNorm2d& norm, const torch::Tensor& product,
                          const torch::Tensor& added = {});

// residual + added; on the CPU, LibTorch's sum of float32 and bfloat16 takes 17 times as long as a
// cast and a sum of one type.  Both give the same bits.
torch::Tensor residual_sum(const torch::Tensor& residual, const torch::Tensor& added);

// torch::gelu(product), in one pass and to seven digits of the largest output where it is trained.
torch::Tensor gelu_of(const torch::Tensor& product);

// norm(product), of which the normalisation remembers nothing.
torch::Tensor normed_aside(const torch::nn::BatchNorm2d& norm, const torch::Tensor& product);

// What a layer did: `pre_activation` is what it made of `input`, `output` what became of that.
LayerRecord layer_record(const std::string& name, const torch::nn::Conv2d& layer,
                         const torch::Tensor& input, const torch::Tensor& pre_activation,
                         const torch::Tensor& output);
LayerRecord layer_record(const std::string& name, const torch::nn::Linear& layer,
                         const torch::Tensor& input, const torch::Tensor& pre_activation,
                         const torch::Tensor& output);

// The last layer of a residual branch: `before_add` is what the branch hands to the addition.
LayerRecord residual_record(LayerRecord layer, const torch::Tensor& before_add);

}  // namespace kelvin
