#include "kelvin/model/layers.h"

#include <torch/torch.h>

#include <array>

#include "kelvin/core/check.h"
#include "kelvin/model/precision.h"
#include "kelvin/ops/attention.h"
#include "kelvin/ops/batch_norm_relu.h"
#include "kelvin/ops/convolution_3x3.h"
#include "kelvin/ops/gelu.h"
#include "kelvin/ops/libtorch.h"
#include "kelvin/ops/linear.h"
#include "kelvin/ops/reference_ops.h"

namespace kelvin {
namespace {

// Everything here pads by a number, the same on all sides; other paddings would throw.
const torch::ExpandingArray<2>& padding_of(const torch::nn::Conv2d& layer) {
  // Of std or c10, as the variant is.
  return get<torch::ExpandingArray<2>>(layer->options.padding());
}

// Whether products of our own are to be of float32 or of bfloat16.
bool takes_float_products() { return !uses_reference_ops() && !is_autocast_enabled(torch::kCPU); }
bool takes_bf16_products() { return !uses_reference_ops() && is_autocast_enabled(torch::kCPU); }

// Whether kernels that cost a digit or two will do: enough to train with, not for what is measured.
bool takes_rougher_kernels() { return !uses_reference_ops() && torch::GradMode::is_enabled(); }

// By Winograd's algorithm.  What is still float32 where products are to be bfloat16 is left to
// autocast.
bool takes_fast_convolutions(const torch::Tensor& input) {
  const bool is_bf16 = input.scalar_type() == torch::kBFloat16;
  return takes_rougher_kernels() && is_bf16 == is_autocast_enabled(torch::kCPU);
}

// A convolution that leaves maps their size and looks at the pixels next to each.
bool is_same_3x3(const torch::nn::Conv2d& layer) {
  constexpr std::array<int64_t, 2> kOnes = {1, 1};
  const auto& options = layer->options;
  return *options.stride() == kOnes && *padding_of(layer) == kOnes &&
         *options.dilation() == kOnes && options.groups() == 1;
}

// A strided 1x1 convolution of which oneDNN of LibTorch 1.13 writes the weights' gradient beyond
// its memory on some numbers of threads, such as 3, because it counts channels by the 16 of a
// vector.
bool is_partial_strided_1x1(const torch::nn::Conv2d& layer) {
  constexpr std::array<int64_t, 2> kOnes = {1, 1};
  constexpr std::array<int64_t, 2> kZeros = {0, 0};
  constexpr int64_t kVector = 16;
  const auto& options = layer->options;
  return *options.kernel_size() == kOnes && *options.stride() != kOnes &&
         *padding_of(layer) == kZeros &&
         (options.in_channels() % kVector != 0 || options.out_channels() % kVector != 0);
}

torch::Tensor convolved(const torch::nn::Conv2d& layer, const torch::Tensor& input,
                        const torch::Tensor& weight, const torch::Tensor& bias) {
  const auto& options = layer->options;
  if (is_partial_strided_1x1(layer)) {
    // The pixels it looks at, without the stride; three times slower than with it.
    using torch::indexing::None;
    using torch::indexing::Slice;
    const auto& stride = *options.stride();
    const auto pixels =
        input.index({Slice(), Slice(), Slice(None, None, stride[0]), Slice(None, None, stride[1])});
    return torch::conv2d(pixels, weight, bias, /*stride=*/torch::ExpandingArray<2>(1),
                         padding_of(layer), options.dilation(), options.groups());
  }
  if (takes_fast_convolutions(input) && is_same_3x3(layer) &&
      suits_convolution_3x3(input, weight)) {
    return convolution_3x3(input, weight, bias);
  }
  return torch::conv2d(input, weight, bias, options.stride(), padding_of(layer), options.dilation(),
                       options.groups());
}

torch::Tensor linear(const torch::Tensor& input, const torch::Tensor& weight,
                     const torch::Tensor& bias) {
  const bool is_evaluation = !torch::GradMode::is_enabled();
  if (takes_float_products() && is_evaluation && suits_blocked_linear(input, weight)) {
    return blocked_linear(input, weight, bias);
  }
  if (takes_float_products() && suits_parallel_linear(input, weight)) {
    return parallel_linear(input, weight, bias);
  }
  if (takes_bf16_products() && suits_bfloat16_linear(input, weight)) {
    return bfloat16_linear(input, weight, bias);
  }
  return torch::linear(input, weight, bias);
}

// Of a layer of either kind.
template <class Layer>
LayerRecord record_of_weights(const std::string& name, const Layer& layer,
                              const torch::Tensor& input, const torch::Tensor& pre_activation,
                              const torch::Tensor& output) {
  return {.name = name,
          .weight = layer.weight,
          .bias = layer.bias,
          .input = input,
          .pre_activation = pre_activation,
          .output = output};
}

}  // namespace

torch::nn::Conv2d same_convolution(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride,
                                   bool has_bias) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(inputs, outputs, kernel)
                               .stride(stride)
                               .padding(kernel / 2)
                               .bias(has_bias));
}

bool is_large(const ModelShape& shape) { return shape.height >= 128 && shape.width >= 128; }

bool read_is_for_imagenet(Settings& settings, const std::string& key, const ModelShape& shape) {
  std::string name = is_large(shape) ? "imagenet" : "cifar";
  settings.read(key, name);
  check(name == "imagenet" || name == "cifar", settings.full_name(key),
        ": must be imagenet or cifar, got '", name, "'");
  return name == "imagenet";
}

void check_dropout(const Settings& settings, double dropout) {
  check(dropout >= 0 && dropout < 1, settings.full_name("dropout"), ": must be in [0, 1), got ",
        dropout);
}

torch::Tensor product_of(const torch::nn::Conv2d& layer, const torch::Tensor& input) {
  if (!rounds_products()) return convolved(layer, input, layer->weight, layer->bias);
  return in_precision(convolved(layer, in_precision(input), in_precision(layer->weight),
                                in_precision(layer->bias)));
}

torch::Tensor product_of(const torch::nn::Linear& layer, const torch::Tensor& input) {
  if (!rounds_products()) return linear(input, layer->weight, layer->bias);
  return in_precision(
      linear(in_precision(input), in_precision(layer->weight), in_precision(layer->bias)));
}

torch::Tensor product_of(const torch::Tensor& left, const torch::Tensor& right, double factor,
                         ProductOrder order) {
  if (takes_float_products() && !rounds_products() && suits_batched_product(left, right)) {
    return batched_product(left, right, factor, order);
  }
  // The left ones are multiplied instead of the products: they are fewer numbers.
  const auto scaled = factor == 1 ? left : left * factor;
  return in_precision(torch::matmul(in_precision(scaled), in_precision(right)));
}

bool suits_one_pass_attention(const torch::Tensor& qkv, int64_t heads) {
  return takes_bf16_products() && suits_bfloat16_attention(qkv, heads);
}

torch::Tensor normed_relu(torch::nn::BatchNorm2d& norm, const torch::Tensor& product,
                          const torch::Tensor& added) {
  const BatchNorm fused{.weight = norm->weight,
                        .bias = norm->bias,
                        .running_mean = norm->running_mean,
                        .running_variance = norm->running_var,
                        .momentum = norm->options.momentum().value_or(0),
                        .epsilon = norm->options.eps()};
  if (!uses_reference_ops() && suits_batch_norm_relu(product, fused)) {
    if (!norm->is_training() && !torch::GradMode::is_enabled()) {
      return running_norm_relu(product, fused, added);
    }
    if (norm->is_training() && norm->options.momentum().has_value()) {
      norm->num_batches_tracked.add_(1);
      return batch_norm_relu(product, fused, added);
    }
  }
  const auto normed = norm(product);
  return torch::relu(added.defined() ? normed + added : normed);
}

torch::Tensor residual_sum(const torch::Tensor& residual, const torch::Tensor& added) {
  const bool is_narrow = residual.scalar_type() == torch::kFloat32 &&
                         added.scalar_type() == torch::kBFloat16 && residual.is_cpu();
  return residual + (is_narrow && !uses_reference_ops() ? added.to(torch::kFloat32) : added);
}

torch::Tensor gelu_of(const torch::Tensor& product) {
  return takes_rougher_kernels() && suits_one_pass_gelu(product) ? one_pass_gelu(product)
                                                                 : torch::gelu(product);
}

torch::Tensor normed_aside(const torch::nn::BatchNorm2d& norm, const torch::Tensor& product) {
  const bool by_batch = norm->is_training();
  return torch::batch_norm(product, norm->weight, norm->bias,
                           by_batch ? torch::Tensor() : norm->running_mean,
                           by_batch ? torch::Tensor() : norm->running_var, by_batch, 0,
                           norm->options.eps(), torch::globalContext().userEnabledCuDNN());
}

LayerRecord layer_record(const std::string& name, const torch::nn::Conv2d& layer,
                         const torch::Tensor& input, const torch::Tensor& pre_activation,
                         const torch::Tensor& output) {
  auto record = record_of_weights(name, *layer, input, pre_activation, output);
  record.stride = layer->options.stride()->at(0);
  record.padding = padding_of(layer)->at(0);
  return record;
}

LayerRecord layer_record(const std::string& name, const torch::nn::Linear& layer,
                         const torch::Tensor& input, const torch::Tensor& pre_activation,
                         const torch::Tensor& output) {
  return record_of_weights(name, *layer, input, pre_activation, output);
}

LayerRecord residual_record(LayerRecord layer, const torch::Tensor& before_add) {
  layer.before_add = before_add;
  return layer;
}

}  // namespace kelvin
