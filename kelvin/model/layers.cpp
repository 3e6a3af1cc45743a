#include "kelvin/model/layers.h"

#include <torch/torch.h>

#include "kelvin/core/check.h"
#include "kelvin/model/precision.h"

namespace kelvin {
namespace {

// Everything here pads by a number, the same on all sides; other paddings would throw.
const torch::ExpandingArray<2>& padding_of(const torch::nn::Conv2d& layer) {
  return c10::get<torch::ExpandingArray<2>>(layer->options.padding());
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
  if (!rounds_products()) return layer.ptr()->forward(input);
  return in_precision(torch::conv2d(in_precision(input), in_precision(layer->weight),
                                    in_precision(layer->bias), layer->options.stride(),
                                    padding_of(layer), layer->options.dilation(),
                                    layer->options.groups()));
}

torch::Tensor product_of(const torch::nn::Linear& layer, const torch::Tensor& input) {
  if (!rounds_products()) return layer.ptr()->forward(input);
  return in_precision(
      torch::linear(in_precision(input), in_precision(layer->weight), in_precision(layer->bias)));
}

torch::Tensor product_of(const torch::Tensor& left, const torch::Tensor& right) {
  return in_precision(torch::matmul(in_precision(left), in_precision(right)));
}

Tap tap_of(const std::string& name, const torch::nn::Conv2d& layer, const torch::Tensor& input,
           const torch::Tensor& product, const torch::Tensor& output) {
  return {.name = name,
          .weight = layer->weight,
          .bias = layer->bias,
          .input = input,
          .product = product,
          .output = output,
          .stride = layer->options.stride()->at(0),
          .padding = padding_of(layer)->at(0)};
}

Tap tap_of(const std::string& name, const torch::nn::Linear& layer, const torch::Tensor& input,
           const torch::Tensor& product, const torch::Tensor& output) {
  return {.name = name,
          .weight = layer->weight,
          .bias = layer->bias,
          .input = input,
          .product = product,
          .output = output};
}

Tap residual_tap(Tap tap, const torch::Tensor& before_add) {
  tap.before_add = before_add;
  return tap;
}

}  // namespace kelvin
