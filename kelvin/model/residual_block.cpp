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

BasicBlock::BasicBlock(const BlockShape& shape)
    : ResidualBlock(shape),
      conv1_(
          register_module("conv1", same_convolution(shape.inputs, shape.outputs, 3, shape.stride))),
      bn1_(register_module("bn1", BatchNorm2d(shape.outputs))),
      conv2_(register_module("conv2", same_convolution(shape.outputs, shape.outputs, 3))),
      bn2_(register_module("bn2", BatchNorm2d(shape.outputs))) {
  register_shortcut();
}

torch::Tensor BasicBlock::forward(const torch::Tensor& input, const std::string& name, Taps* taps) {
  const auto first = product_of(conv1_, input);
  const auto hidden = normed_relu(bn1_, first);
  if (taps) taps->record(layer_record(name + ".conv1", conv1_, input, first, hidden));
  const auto second = product_of(conv2_, hidden);
  auto output = normed_relu(bn2_, second, shortcut(input, taps));
  if (taps) {
    taps->record(residual_record(layer_record(name + ".conv2", conv2_, hidden, second, output),
                                 before_add(bn2_, second, *taps)));
  }
  return output;
}

Bottleneck::Bottleneck(const BlockShape& shape)
    : ResidualBlock(shape),
      conv1_(
          register_module("conv1", same_convolution(shape.inputs, shape.outputs / kExpansion, 1))),
      bn1_(register_module("bn1", BatchNorm2d(shape.outputs / kExpansion))),
      conv2_(
          register_module("conv2", same_convolution(shape.outputs / kExpansion,
                                                    shape.outputs / kExpansion, 3, shape.stride))),
      bn2_(register_module("bn2", BatchNorm2d(shape.outputs / kExpansion))),
      conv3_(
          register_module("conv3", same_convolution(shape.outputs / kExpansion, shape.outputs, 1))),
      bn3_(register_module("bn3", BatchNorm2d(shape.outputs))) {
  register_shortcut();
}

torch::Tensor Bottleneck::forward(const torch::Tensor& input, const std::string& name, Taps* taps) {
  const auto first = product_of(conv1_, input);
  const auto narrow = normed_relu(bn1_, first);
  if (taps) taps->record(layer_record(name + ".conv1", conv1_, input, first, narrow));
  const auto second = product_of(conv2_, narrow);
  const auto spatial = normed_relu(bn2_, second);
  if (taps) taps->record(layer_record(name + ".conv2", conv2_, narrow, second, spatial));
  const auto third = product_of(conv3_, spatial);
  auto output = normed_relu(bn3_, third, shortcut(input, taps));
  if (taps) {
    taps->record(residual_record(layer_record(name + ".conv3", conv3_, spatial, third, output),
                                 before_add(bn3_, third, *taps)));
  }
  return output;
}

}  // namespace kelvin
