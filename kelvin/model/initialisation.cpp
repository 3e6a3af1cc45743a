#include "kelvin/model/initialisation.h"

#include <torch/torch.h>

#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/model/head.h"

namespace kelvin {
namespace {

// Weight and bias of one layer.
struct Layer {
  torch::Tensor weight;
  torch::Tensor bias;
};

std::vector<Layer> layers_of(Model& model) {
  std::vector<Layer> layers;
  for (const auto& module : model.modules(/*include_self=*/false)) {
    if (auto* convolution = module->as<torch::nn::Conv2d>()) {
      layers.push_back({convolution->weight, convolution->bias});
    } else if (auto* linear = module->as<torch::nn::Linear>()) {
      layers.push_back({linear->weight, linear->bias});
    }
  }
  return layers;
}

Head& head_of(Model& model) {
  check(model.head() != nullptr, "init: this model does not tell which layer makes its logits");
  return *model.head();
}

double std_dev_of(const torch::Tensor& weight, const InitOptions& options) {
  const auto receptive_field = weight.dim() > 2 ? weight[0][0].numel() : 1;
  const auto fan_in = static_cast<double>(weight.size(1) * receptive_field);
  const auto fan_out = static_cast<double>(weight.size(0) * receptive_field);
  if (options.scheme == InitScheme::he) return std::sqrt(2 / fan_in);
  if (options.scheme == InitScheme::xavier) return std::sqrt(2 / (fan_in + fan_out));
  return options.std_dev;
}

void scale(const Layer& layer, double factor) {
  if (factor == 1) return;  // keeps the very bits
  layer.weight.mul_(factor);
  if (layer.bias.defined()) layer.bias.mul_(factor);
}

// The bias is 0, or all images would have nearly the same logits.
void draw_uniform(const Layer& layer, double limit) {
  layer.weight.uniform_(-limit, limit);
  if (layer.bias.defined()) layer.bias.zero_();
}

}  // namespace

InitScheme init_scheme_of(const std::string& name) {
  if (name == "default") return InitScheme::usual;
  if (name == "he") return InitScheme::he;
  if (name == "xavier") return InitScheme::xavier;
  check(name == "fixed", "init.scheme: must be default, he, xavier or fixed, got '", name, "'");
  return InitScheme::fixed;
}

void initialise(Model& model, const InitOptions& options) {
  torch::NoGradGuard no_grad;
  for (const auto& layer : layers_of(model)) {
    if (options.scheme != InitScheme::usual) {
      layer.weight.normal_(0, std_dev_of(layer.weight, options));
      if (layer.bias.defined()) layer.bias.zero_();
    }
    scale(layer, options.scale);
  }
  if (options.last_uniform > 0) {
    const auto& last = head_of(model).linear();
    draw_uniform({last->weight, last->bias}, options.last_uniform);
  }
  if (options.last_scale != 1) head_of(model).scale_logits(options.last_scale);
}

}  // namespace kelvin
