#include <torch/torch.h>

#include "kelvin/core/check.h"
#include "kelvin/model/model.h"

namespace kelvin {
namespace {

struct MlpOptions {
  int64_t width = 1024;  // of each hidden layer
  int64_t depth = 8;     // linear layers, the classifier included
};

// Flattened images through depth - 1 hidden ReLU layers.
class Mlp : public Model {
 public:
  Mlp(const ModelShape& shape, const MlpOptions& options) {
    int64_t inputs = shape.channels * shape.height * shape.width;
    for (int64_t layer = 0; layer + 1 < options.depth; ++layer) {
      layers_->push_back(torch::nn::Linear(inputs, options.width));
      inputs = options.width;
    }
    layers_->push_back(torch::nn::Linear(inputs, shape.classes));
    register_module("layers", layers_);
  }

  torch::Tensor forward(const torch::Tensor& images, Taps* taps) override {
    auto activations = images.flatten(1);
    for (size_t i = 0; i < layers_->size(); ++i) {
      auto& linear = layers_[i]->as<torch::nn::Linear>()[0];
      const auto input = activations;
      activations = linear.forward(input);
      if (i + 1 < layers_->size()) activations = torch::relu(activations);
      if (taps) {
        taps->record({.name = "layers." + std::to_string(i),
                      .weight = linear.weight,
                      .bias = linear.bias,
                      .input = input,
                      .output = activations});
      }
    }
    return activations;
  }

 private:
  torch::nn::ModuleList layers_;
};

std::shared_ptr<Model> build(const ModelShape& shape, Settings& settings) {
  MlpOptions options;
  settings.read("width", options.width);
  settings.read("depth", options.depth);
  check(options.width >= 1 && options.width <= 65536, settings.full_name("width"),
        ": must be from 1 to 65536, got ", options.width);
  check(options.depth >= 1 && options.depth <= 1000, settings.full_name("depth"),
        ": must be from 1 to 1000, got ", options.depth);
  return std::make_shared<Mlp>(shape, options);
}

const bool registered = models().add(
    "mlp", {
               .summary = "fully connected ReLU network on flattened images",
               .reference = "The tunnel effect, arXiv 2305.19753, appendix: MLP of depth 6 to 12",
               .build = build,
           });

}  // namespace
}  // namespace kelvin
