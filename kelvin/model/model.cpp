#include "kelvin/model/model.h"

#include <torch/torch.h>

#include <utility>

namespace kelvin {

void Taps::record(Tap tap) {
  count_macs(tap.weight, tap.product);
  if (!options_.layers) layers_.clear();
  layers_.push_back(std::move(tap));
  if (!last_layer_.empty() && layers_.back().name == last_layer_) throw LayerReached();
}

void Taps::record(AttentionTap tap, int64_t macs) {
  macs_ += macs;
  if (options_.attention) attention_.push_back(std::move(tap));
}

void Taps::count_macs(const torch::Tensor& weight, const torch::Tensor& product) {
  // Every output position (pixel or token) costs the whole weight once.
  macs_ += weight.numel() * (product.numel() / weight.size(0));
}

Registry<ModelEntry>& models() {
  static Registry<ModelEntry> registry("model");
  return registry;
}

int64_t parameter_count(const Model& model) {
  int64_t count = 0;
  for (const auto& parameter : model.parameters()) count += parameter.numel();
  return count;
}

}  // namespace kelvin
