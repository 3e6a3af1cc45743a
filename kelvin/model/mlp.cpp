#include <torch/torch.h>

#include "kelvin/core/check.h"
#include "kelvin/model/head.h"
#include "kelvin/model/layers.h"
#include "kelvin/model/model.h"

namespace kelvin {
namespace {

struct MlpOptions {
  int64_t width = 1024;  // of each hidden layer
  int64_t depth = 8;     // linear layers, the classifier included
  double dropout = 0;    // after each hidden layer
  HeadOptions head = {};
};

// Flattened images through depth - 1 hidden ReLU layers.
class Mlp : public Model {
 public:
  Mlp(const ModelShape& shape, const MlpOptions& options) : dropout_(options.dropout) {
    const auto layers = register_module("layers", std::make_shared<torch::nn::Module>("layers"));
    int64_t inputs = shape.channels * shape.height * shape.width;
    for (int64_t layer = 0; layer + 1 < options.depth; ++layer) {
      hidden_.push_back(layers->register_module(
          std::to_string(layer),
          torch::nn::Linear(
              torch::nn::LinearOptions(inputs, options.width).bias(options.head.bias))));
      inputs = options.width;
    }
    head_ = Head(inputs, shape.classes, options.head);
    head_.register_in(*this, *layers, std::to_string(hidden_.size()));
    register_module("dropout", dropout_);
  }

  torch::Tensor forward(const torch::Tensor& images, Taps* taps) override {
    auto activations = images.flatten(1);
    for (size_t i = 0; i < hidden_.size(); ++i) {
      const auto input = activations;
      const auto pre_activation = product_of(hidden_[i], input);
      activations = torch::relu(pre_activation);
      if (taps) {
        taps->record(layer_record(name_of(i), hidden_[i], input, pre_activation, activations));
      }
      activations = dropout_(activations);
    }
    return head_.forward(activations, name_of(hidden_.size()), taps);
  }

  Head* head() override { return &head_; }

 private:
  static std::string name_of(size_t layer) { return "layers." + std::to_string(layer); }

  std::vector<torch::nn::Linear> hidden_;
  torch::nn::Dropout dropout_;
  Head head_;
};

ModelBuilder read_mlp(const ModelShape& shape, Settings& settings) {
  MlpOptions options;
  settings.read("width", options.width);
  settings.read("depth", options.depth);
  settings.read("dropout", options.dropout);
  options.head = read_head(settings);
  check(options.width >= 1 && options.width <= 65536, settings.full_name("width"),
        ": must be from 1 to 65536, got ", options.width);
  check(options.depth >= 1 && options.depth <= 1000, settings.full_name("depth"),
        ": must be from 1 to 1000, got ", options.depth);
  check_dropout(settings, options.dropout);
  return [shape, options] { return std::make_shared<Mlp>(shape, options); };
}

const bool mlp_registered = models().add(
    "mlp", {
               .summary = "fully connected ReLU network on flattened images",
               .reference = "The tunnel effect, arXiv 2305.19753, appendix: MLP of depth 6 to 12",
               .read = read_mlp,
           });

}  // namespace
}  // namespace kelvin
