#include <torch/torch.h>

#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/model/head.h"
#include "kelvin/model/layers.h"
#include "kelvin/model/model.h"

namespace kelvin {
namespace {

using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;
using torch::nn::Linear;

// Convolutions in each of the five stages, which end in a max-pool.
using VggPlan = std::vector<int64_t>;
constexpr std::array<int64_t, 5> kChannels = {64, 128, 256, 512, 512};

struct VggOptions {
  double width = 1;             // multiplies channels and hidden units
  bool has_norm = false;        // batch normalisation after each convolution
  bool has_large_head = false;  // 7 x 7 maps and 4096 hidden units; otherwise 1 x 1 and 512
  double dropout = 0.5;         // in the classifier
  HeadOptions head = {};
};

int64_t scaled(int64_t channels, double width) {
  return std::max<int64_t>(1, std::llround(static_cast<double>(channels) * width));
}

// The networks of Simonyan and Zisserman: 3x3 convolutions and three linear layers.  Parameter
// names are torchvision's; the small head for CIFAR has the same ones.
class Vgg : public Model {
 public:
  Vgg(const ModelShape& shape, const VggPlan& plan, const VggOptions& options)
      : pooled_side_(options.has_large_head ? 7 : 1), dropout_(options.dropout) {
    const auto channels = add_features(shape.channels, plan, options);
    const auto classifier =
        register_module("classifier", std::make_shared<torch::nn::Module>("classifier"));
    const auto hidden = scaled(options.has_large_head ? 4096 : 512, options.width);
    const auto linear = [&](const char* name, int64_t inputs) {
      return classifier->register_module(
          name, Linear(torch::nn::LinearOptions(inputs, hidden).bias(options.head.bias)));
    };
    hidden1_ = linear("0", channels * pooled_side_ * pooled_side_);
    hidden2_ = linear("3", hidden);
    head_ = Head(hidden, shape.classes, options.head);
    head_.register_in(*this, *classifier, "6");
    register_module("dropout", dropout_);
    draw_weights();
  }

  torch::Tensor forward(const torch::Tensor& images, Taps* taps) override {
    auto activations = images;
    for (auto& layer : layers_) {
      const auto input = activations;
      const auto pre_activation = product_of(layer.convolution, input);
      activations = layer.norm.is_empty() ? torch::relu(pre_activation)
                                          : normed_relu(layer.norm, pre_activation);
      if (taps) {
        taps->record(
            layer_record(layer.name, layer.convolution, input, pre_activation, activations));
      }
      if (layer.is_last_of_stage) activations = torch::max_pool2d(activations, 2, 2);
    }
    // Row by row as in the published weights, whatever the memory format.
    activations = torch::adaptive_avg_pool2d(activations, {pooled_side_, pooled_side_}).flatten(1);
    activations = hidden(hidden1_, "classifier.0", activations, taps);
    activations = hidden(hidden2_, "classifier.3", activations, taps);
    return head_.forward(activations, "classifier.6", taps);
  }

  Head* head() override { return &head_; }

 private:
  struct Layer {
    std::string name;
    Conv2d convolution{nullptr};
    BatchNorm2d norm{nullptr};
    bool is_last_of_stage = false;
  };

  // Returns the channels of the last stage.  Places in `features` are those of torchvision, where
  // activations and pools count as well.
  int64_t add_features(int64_t inputs, const VggPlan& plan, const VggOptions& options) {
    const auto features =
        register_module("features", std::make_shared<torch::nn::Module>("features"));
    int64_t place = 0;
    for (size_t stage = 0; stage < plan.size(); ++stage) {
      const auto outputs = scaled(kChannels.at(stage), options.width);
      for (int64_t i = 0; i < plan[stage]; ++i) {
        Layer layer{.name = "features." + std::to_string(place),
                    .is_last_of_stage = i + 1 == plan[stage]};
        layer.convolution = features->register_module(
            std::to_string(place), same_convolution(inputs, outputs, 3, 1, options.head.bias));
        if (options.has_norm) {
          layer.norm = features->register_module(std::to_string(place + 1), BatchNorm2d(outputs));
        }
        layers_.push_back(layer);
        place += options.has_norm ? 3 : 2;
        inputs = outputs;
      }
      ++place;
    }
    return inputs;
  }

  torch::Tensor hidden(const Linear& layer, const std::string& name, const torch::Tensor& input,
                       Taps* taps) {
    const auto pre_activation = product_of(layer, input);
    const auto output = torch::relu(pre_activation);
    if (taps) taps->record(layer_record(name, layer, input, pre_activation, output));
    return dropout_(output);
  }

  void draw_weights() {
    torch::NoGradGuard no_grad;
    for (auto& module : modules(/*include_self=*/false)) {
      if (auto* convolution = module->as<Conv2d>()) {
        torch::nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanOut, torch::kReLU);
        if (convolution->bias.defined()) convolution->bias.zero_();
      } else if (auto* linear = module->as<Linear>()) {
        linear->weight.normal_(0, 0.01);
        if (linear->bias.defined()) linear->bias.zero_();
      }
    }
  }

  int64_t pooled_side_;
  std::vector<Layer> layers_;
  Linear hidden1_{nullptr};
  Linear hidden2_{nullptr};
  torch::nn::Dropout dropout_;
  Head head_;
};

auto reader(const VggPlan& plan, bool has_norm) {
  return [plan, has_norm](const ModelShape& shape, Settings& settings) -> ModelBuilder {
    VggOptions options{.has_norm = has_norm};
    settings.read("width", options.width);
    options.has_large_head = read_is_for_imagenet(settings, "head", shape);
    settings.read("dropout", options.dropout);
    options.head = read_head(settings);
    check(options.width >= 0.015625 && options.width <= 16, settings.full_name("width"),
          ": must be in [0.015625, 16], got ", options.width);
    check_dropout(settings, options.dropout);
    check(shape.height >= 32 && shape.width >= 32,
          "model.name: VGG halves its maps five times, so "
          "images must be at least 32 x 32, are ",
          shape.height, " x ", shape.width);
    return [shape, plan, options] { return std::make_shared<Vgg>(shape, plan, options); };
  };
}

// Each with and without batch normalisation.
bool add(const std::string& name, const std::string& layers, const VggPlan& plan) {
  const auto entry = [&](bool has_norm) {
    return ModelEntry{.summary = layers + " convolutions of 3x3 and three linear layers" +
                                 (has_norm ? ", batch normalisation" : ""),
                      .reference = "Very deep convolutional networks, arXiv 1409.1556",
                      .read = reader(plan, has_norm)};
  };
  return models().add(name, entry(false)) && models().add(name + "_bn", entry(true));
}

const bool registered_11 = add("vgg11", "8", {1, 1, 2, 2, 2});
const bool registered_16 = add("vgg16", "13", {2, 2, 3, 3, 3});
const bool registered_19 = add("vgg19", "16", {2, 2, 4, 4, 4});

}  // namespace
}  // namespace kelvin
