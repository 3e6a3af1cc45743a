#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include <string>
#include <vector>

#include "kelvin/model/model.h"

namespace kelvin {

// What carries the input of a block past its convolutions where their shapes differ.
enum class Shortcut {
  padded,    // option A: every second pixel, new channels are zero; no parameters
  projected  // option B: a 1x1 convolution and a normalisation
};

struct BlockShape {
  int64_t inputs = 0;   // channels
  int64_t outputs = 0;  // channels
  int64_t stride = 1;
  Shortcut shortcut = Shortcut::projected;
};

// Convolutions with normalisation whose result is added to the block's input, then ReLU.
class ResidualBlock : public torch::nn::Module {
 public:
  // `name` is the block's full name in the network.
  torch::Tensor forward(const torch::Tensor& input, const std::string& name, Taps* taps);

 protected:
  explicit ResidualBlock(const BlockShape& shape);

  // In order of execution; they are called conv1 and bn1, conv2 and bn2, ...
  void register_convolution(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride = 1);
  // After them, as in the published networks.
  void register_shortcut();

 private:
  struct Layer {
    torch::nn::Conv2d convolution;
    torch::nn::BatchNorm2d norm;
  };

  torch::Tensor shortcut(const torch::Tensor& input, Taps* taps);

  BlockShape shape_;
  std::vector<Layer> layers_;
  torch::nn::Conv2d projection_{nullptr};
  torch::nn::BatchNorm2d projection_bn_{nullptr};
};

// Two 3x3 convolutions.
class BasicBlock : public ResidualBlock {
 public:
  static constexpr int64_t kExpansion = 1;  // output channels over inner ones

  explicit BasicBlock(const BlockShape& shape);
};

// 1x1, 3x3 and 1x1 convolutions, the inner ones on a quarter of the output's channels.  The 3x3 one
// has the stride, as in torchvision ("ResNet v1.5").
class Bottleneck : public ResidualBlock {
 public:
  static constexpr int64_t kExpansion = 4;

  explicit Bottleneck(const BlockShape& shape);
};

}  // namespace kelvin
