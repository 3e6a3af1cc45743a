#include "kelvin/model/head.h"

#include <torch/torch.h>

#include "kelvin/core/check.h"
#include "kelvin/model/layers.h"

namespace kelvin {
namespace {

HeadNorm norm_of(const std::string& key, const std::string& name) {
  check(name == "none" || name == "batch" || name == "layer", key,
        ": must be none, batch or layer, got '", name, "'");
  if (name == "none") return HeadNorm::none;
  return name == "batch" ? HeadNorm::batch : HeadNorm::layer;
}

HeadNorm read_norm(Settings& settings, const std::string& key) {
  std::string name = "none";
  settings.read(key, name);
  return norm_of(settings.full_name(key), name);
}

constexpr auto kBottleneck = "bottleneck";

torch::nn::Linear linear_to_logits(int64_t features, int64_t classes, const HeadOptions& options) {
  const bool is_narrow = options.bottleneck > 0;
  return torch::nn::Linear(
      torch::nn::LinearOptions(is_narrow ? options.bottleneck : features, classes)
          .bias(options.bias && !is_narrow));
}

torch::nn::Linear bottleneck_of(int64_t features, const HeadOptions& options) {
  if (options.bottleneck == 0) return nullptr;
  return torch::nn::Linear(torch::nn::LinearOptions(features, options.bottleneck).bias(false));
}

torch::nn::Sequential normalisation(HeadNorm norm, int64_t size) {
  if (norm == HeadNorm::none) return nullptr;
  if (norm == HeadNorm::batch) return torch::nn::Sequential(torch::nn::BatchNorm1d(size));
  return torch::nn::Sequential(torch::nn::LayerNorm(torch::nn::LayerNormOptions({size})));
}

}  // namespace

HeadOptions read_head(Settings& settings) {
  HeadOptions options;
  settings.read("bias", options.bias);
  settings.read(kBottleneck, options.bottleneck);
  check(options.bottleneck >= 0 && options.bottleneck <= 65536, settings.full_name(kBottleneck),
        ": must be from 1 to 65536, or 0 for none, got ", options.bottleneck);
  options.norm_before = read_norm(settings, "norm_before_logits");
  options.norm_after = read_norm(settings, "norm_after_logits");
  return options;
}

Head::Head(int64_t features, int64_t classes, const HeadOptions& options)
    : linear_(linear_to_logits(features, classes, options)),
      bottleneck_(bottleneck_of(features, options)),
      before_(normalisation(options.norm_before, features)),
      after_(normalisation(options.norm_after, classes)) {}

void Head::register_in(Model& model, torch::nn::Module& owner, const std::string& name) {
  if (!before_.is_empty()) model.register_module("norm_before_logits", before_);
  if (!bottleneck_.is_empty()) model.register_module(kBottleneck, bottleneck_);
  owner.register_module(name, linear_);
  if (!after_.is_empty()) model.register_module("norm_after_logits", after_);
}

torch::Tensor Head::forward(const torch::Tensor& features, const std::string& name, Taps* taps) {
  auto input = before_.is_empty() ? features : before_->forward(features);
  if (!bottleneck_.is_empty()) {
    const auto narrow = product_of(bottleneck_, input);
    if (taps) taps->record(layer_record(kBottleneck, bottleneck_, input, narrow, narrow));
    input = narrow;
  }
  const auto pre_activation = product_of(linear_, input);
  auto logits = after_.is_empty() ? pre_activation : after_->forward(pre_activation);
  if (taps) taps->record(layer_record(name, linear_, input, pre_activation, logits));
  return logits;
}

std::vector<torch::Tensor> Head::tensors() const {
  std::vector<torch::Tensor> all = linear_->parameters();
  if (!bottleneck_.is_empty()) all.push_back(bottleneck_->weight);
  for (const auto* norm : {&before_, &after_}) {
    if (norm->is_empty()) continue;
    for (const auto& tensor : (*norm)->parameters()) all.push_back(tensor);
    for (const auto& tensor : (*norm)->buffers()) all.push_back(tensor);
  }
  return all;
}

std::vector<torch::Tensor> Head::scaled_parameters() const {
  return after_.is_empty() ? linear_->parameters() : after_->parameters();
}

void Head::scale_logits(double factor) {
  torch::NoGradGuard no_grad;
  for (const auto& parameter : scaled_parameters()) parameter.mul_(factor);
}

}  // namespace kelvin
