#include "kelvin/model/model.h"

#include <torch/torch.h>

#include <utility>

namespace kelvin {

void Taps::record(LayerRecord layer) {
  count_macs(layer.weight, layer.pre_activation);
  if (!options_.layers) layers_.clear();
  layers_.push_back(std::move(layer));
  if (!last_layer_.empty() && layers_.back().name == last_layer_) throw LayerReached();
}

void Taps::record(AttentionRecord attention, int64_t macs) {
  macs_ += macs;
  if (options_.attention) attention_.push_back(std::move(attention));
}

void Taps::count_macs(const torch::Tensor& weight, const torch::Tensor& pre_activation) {
  // Every output position (pixel or token) costs the whole weight once.
  macs_ += weight.numel() * (pre_activation.numel() / weight.size(0));
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
