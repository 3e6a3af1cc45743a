#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include <memory>
#include <string>

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
  virtual torch::Tensor forward(const torch::Tensor& input, const std::string& name,
                                Taps* taps) = 0;

 protected:
  explicit ResidualBlock(const BlockShape& shape);

  // Registered by the blocks after their own parts, as in the published networks.
  void register_shortcut();
  torch::Tensor shortcut(const torch::Tensor& input, Taps* taps);

 private:
  BlockShape shape_;
  torch::nn::Conv2d projection_{nullptr};
  torch::nn::BatchNorm2d projection_bn_{nullptr};
};

// Two 3x3 convolutions.
class BasicBlock : public ResidualBlock {
 public:
  static constexpr int64_t kExpansion = 1;  // output channels over inner ones

  explicit BasicBlock(const BlockShape& shape);
  torch::Tensor forward(const torch::Tensor& input, const std::string& name, Taps* taps) override;

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::BatchNorm2d bn1_;
  torch::nn::Conv2d conv2_;
  torch::nn::BatchNorm2d bn2_;
};

// 1x1, 3x3 and 1x1 convolutions, the inner ones on a quarter of the output's channels.  The 3x3 one
// has the stride, as in torchvision ("ResNet v1.5").
class Bottleneck : public ResidualBlock {
 public:
  static constexpr int64_t kExpansion = 4;

  explicit Bottleneck(const BlockShape& shape);
  torch::Tensor forward(const torch::Tensor& input, const std::string& name, Taps* taps) override;

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::BatchNorm2d bn1_;
  torch::nn::Conv2d conv2_;
  torch::nn::BatchNorm2d bn2_;
  torch::nn::Conv2d conv3_;
  torch::nn::BatchNorm2d bn3_;
};

}  // namespace kelvin
