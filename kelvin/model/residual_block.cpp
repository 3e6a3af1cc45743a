#include "kelvin/model/residual_block.h"

#include <torch/torch.h>

#include "kelvin/model/layers.h"

namespace kelvin {

using torch::nn::BatchNorm2d;

namespace {

// Computed once more beside the sum, because only those who look at all layers want it.
torch::Tensor before_add(const BatchNorm2d& norm, const torch::Tensor& pre_activation,
                         const Taps& taps) {
  return taps.keeps_all_layers() ? normed_aside(norm, pre_activation) : torch::Tensor();
}

}  // namespace

ResidualBlock::ResidualBlock(const BlockShape& shape) : shape_(shape) {}

void ResidualBlock::register_convolution(int64_t inputs, int64_t outputs, int64_t kernel,
                                         int64_t stride) {
  const auto number = std::to_string(layers_.size() + 1);
  const auto convolution =
      register_module("conv" + number, same_convolution(inputs, outputs, kernel, stride));
  layers_.push_back({convolution, register_module("bn" + number, BatchNorm2d(outputs))});
}

void ResidualBlock::register_shortcut() {
  if (shape_.stride == 1 && shape_.inputs == shape_.outputs) return;
  if (shape_.shortcut == Shortcut::padded) return;
  projection_ = same_convolution(shape_.inputs, shape_.outputs, 1, shape_.stride);
  projection_bn_ = BatchNorm2d(shape_.outputs);
  torch::nn::Sequential downsample(projection_, projection_bn_);
  register_module("downsample", downsample);
}

torch::Tensor ResidualBlock::shortcut(const torch::Tensor& input, Taps* taps) {
  if (!projection_.is_empty()) {
    const auto projected = product_of(projection_, input);
    if (taps) taps->count_macs(projection_->weight, projected);
    return projection_bn_(projected);
  }
  if (shape_.stride == 1 && shape_.inputs == shape_.outputs) return input;
  using torch::indexing::None;
  using torch::indexing::Slice;
  const auto pixels = Slice(None, None, shape_.stride);
  const auto added = shape_.outputs - shape_.inputs;
  return torch::constant_pad_nd(input.index({Slice(), Slice(), pixels, pixels}),
                                {0, 0, 0, 0, added / 2, added - added / 2});
}

torch::Tensor ResidualBlock::forward(const torch::Tensor& input, const std::string& name,
                                     Taps* taps) {
  auto activations = input;
  for (size_t i = 0; i < layers_.size(); ++i) {
    auto& [convolution, norm] = layers_[i];
    const bool is_last = i + 1 == layers_.size();
    const auto product = product_of(convolution, activations);
    const auto output =
        is_last ? normed_relu(norm, product, shortcut(input, taps)) : normed_relu(norm, product);
    if (taps) {
      const auto layer = layer_record(name + ".conv" + std::to_string(i + 1), convolution,
                                      activations, product, output);
      taps->record(is_last ? residual_record(layer, before_add(norm, product, *taps)) : layer);
    }
    activations = output;
  }
  return activations;
}

BasicBlock::BasicBlock(const BlockShape& shape) : ResidualBlock(shape) {
  register_convolution(shape.inputs, shape.outputs, 3, shape.stride);
  register_convolution(shape.outputs, shape.outputs, 3);
  register_shortcut();
}

Bottleneck::Bottleneck(const BlockShape& shape) : ResidualBlock(shape) {
  const auto inner = shape.outputs / kExpansion;
  register_convolution(shape.inputs, inner, 1);
  register_convolution(inner, inner, 3, shape.stride);
  register_convolution(inner, shape.outputs, 1);
  register_shortcut();
}

}  // namespace kelvin
