#include <torch/torch.h>

#include <array>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/model/model.h"

namespace kelvin {
namespace {

using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;

struct ResNetOptions {
  double width = 1;         // multiplies the channels 64, 128, 256, 512 of the four stages
  int64_t stem_stride = 1;  // 2 halves the maps once more: four times fewer multiply-adds
};

Conv2d convolution(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride) {
  return Conv2d(
      Conv2dOptions(inputs, outputs, kernel).stride(stride).padding(kernel / 2).bias(false));
}

// Two 3x3 convolutions and the identity, or a 1x1 projection where the shape changes.
class BasicBlock : public torch::nn::Module {
 public:
  BasicBlock(int64_t inputs, int64_t outputs, int64_t stride)
      : conv1_(register_module("conv1", convolution(inputs, outputs, 3, stride))),
        bn1_(register_module("bn1", BatchNorm2d(outputs))),
        conv2_(register_module("conv2", convolution(outputs, outputs, 3, 1))),
        bn2_(register_module("bn2", BatchNorm2d(outputs))) {
    if (stride == 1 && inputs == outputs) return;
    projection_ = convolution(inputs, outputs, 1, stride);
    projection_bn_ = BatchNorm2d(outputs);
    torch::nn::Sequential downsample(projection_, projection_bn_);
    register_module("downsample", downsample);
  }

  torch::Tensor forward(const torch::Tensor& input, const std::string& name, Taps* taps) {
    const auto hidden = torch::relu(bn1_(conv1_(input)));
    auto output = bn2_(conv2_(hidden));
    output = torch::relu(output + shortcut(input, taps));
    if (taps) {
      taps->record({.name = name + ".conv1",
                    .weight = conv1_->weight,
                    .bias = {},
                    .input = input,
                    .output = hidden});
      taps->record({.name = name + ".conv2",
                    .weight = conv2_->weight,
                    .bias = {},
                    .input = hidden,
                    .output = output});
    }
    return output;
  }

 private:
  torch::Tensor shortcut(const torch::Tensor& input, Taps* taps) {
    if (projection_.is_empty()) return input;
    auto projected = projection_bn_(projection_(input));
    if (taps) taps->count_macs(projection_->weight, projected);
    return projected;
  }

  Conv2d conv1_;
  BatchNorm2d bn1_;
  Conv2d conv2_;
  BatchNorm2d bn2_;
  Conv2d projection_{nullptr};
  BatchNorm2d projection_bn_{nullptr};
};

// The residual network of He et al. with the 3x3 stem that small images get
// (no max-pool).  Parameter names are torchvision's.
class ResNet : public Model {
 public:
  ResNet(const ModelShape& shape, const std::array<int64_t, 4>& blocks,
         const ResNetOptions& options) {
    const auto channels = [&](int64_t stage) {
      return static_cast<int64_t>(std::llround(std::ldexp(64 * options.width, int(stage))));
    };
    conv1_ =
        register_module("conv1", convolution(shape.channels, channels(0), 3, options.stem_stride));
    bn1_ = register_module("bn1", BatchNorm2d(channels(0)));
    int64_t inputs = channels(0);
    for (int64_t stage = 0; stage < 4; ++stage) {
      torch::nn::Sequential layer;
      const auto name = "layer" + std::to_string(stage + 1);
      for (int64_t i = 0; i < blocks.at(static_cast<size_t>(stage)); ++i) {
        const int64_t stride = i == 0 && stage > 0 ? 2 : 1;
        auto block = std::make_shared<BasicBlock>(inputs, channels(stage), stride);
        layer->push_back(block);
        blocks_.push_back({name + "." + std::to_string(i), block});
        inputs = channels(stage);
      }
      register_module(name, layer);
    }
    fc_ = register_module("fc", torch::nn::Linear(inputs, shape.classes));
    for (auto& module : modules(/*include_self=*/false)) {
      if (auto* convolution = module->as<Conv2d>()) {
        torch::nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanOut, torch::kReLU);
      }
    }
  }

  torch::Tensor forward(const torch::Tensor& images, Taps* taps) override {
    auto activations = torch::relu(bn1_(conv1_(images)));
    if (taps) {
      taps->record({.name = "conv1",
                    .weight = conv1_->weight,
                    .bias = {},
                    .input = images,
                    .output = activations});
    }
    for (auto& [name, block] : blocks_) activations = block->forward(activations, name, taps);
    const auto features = activations.mean({2, 3});
    auto logits = fc_(features);
    if (taps) {
      taps->record({.name = "fc",
                    .weight = fc_->weight,
                    .bias = fc_->bias,
                    .input = features,
                    .output = logits});
    }
    return logits;
  }

 private:
  Conv2d conv1_{nullptr};
  BatchNorm2d bn1_{nullptr};
  std::vector<std::pair<std::string, std::shared_ptr<BasicBlock>>> blocks_;
  torch::nn::Linear fc_{nullptr};
};

auto builder(const std::array<int64_t, 4>& blocks) {
  return [blocks](const ModelShape& shape, Settings& settings) -> std::shared_ptr<Model> {
    ResNetOptions options;
    settings.read("width", options.width);
    settings.read("stem_stride", options.stem_stride);
    // Below 8 channels, oneDNN of LibTorch 1.13 writes outside of its memory in the backward pass
    // of a strided 1x1 convolution in channels-last.
    check(options.width >= 0.125 && options.width <= 16, settings.full_name("width"),
          ": must be in [0.125, 16], got ", options.width);
    check(options.stem_stride == 1 || options.stem_stride == 2, settings.full_name("stem_stride"),
          ": must be 1 or 2, got ", options.stem_stride);
    return std::make_shared<ResNet>(shape, blocks, options);
  };
}

constexpr auto kReference = "Deep residual learning, arXiv 1512.03385";

const bool registered_10 =
    models().add("resnet10", {.summary = "residual network, one basic block in each of 4 stages",
                              .reference = kReference,
                              .build = builder({1, 1, 1, 1})});
const bool registered_18 =
    models().add("resnet18", {.summary = "residual network, two basic blocks in each of 4 stages",
                              .reference = kReference,
                              .build = builder({2, 2, 2, 2})});

}  // namespace
}  // namespace kelvin
