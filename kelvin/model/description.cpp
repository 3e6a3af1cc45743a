#include "kelvin/model/description.h"

#include <torch/torch.h>

#include "kelvin/model/modes.h"

namespace kelvin {
namespace {

std::vector<int64_t> shape_of_one(const torch::Tensor& batch) { return batch[0].sizes().vec(); }

LayerDescription describe(const LayerRecord& layer) {
  Taps alone;
  alone.count_macs(layer.weight, layer.pre_activation);
  return {.name = layer.name,
          .weight = layer.weight.sizes().vec(),
          .input = shape_of_one(layer.input),
          .output = shape_of_one(layer.output),
          .parameters = layer.weight.numel() + (layer.bias.defined() ? layer.bias.numel() : 0),
          .macs = alone.macs()};
}

}  // namespace

Taps taps_of_one_image(Model& model, const ModelShape& shape, const TapOptions& options) {
  torch::NoGradGuard no_grad;
  const EvaluationMode evaluation(model);
  Taps taps(options);
  model.forward(torch::zeros({1, shape.channels, shape.height, shape.width}), &taps);
  return taps;
}

ModelDescription describe(Model& model, const ModelShape& shape) {
  const auto taps = taps_of_one_image(model, shape, {.layers = true, .attention = false});
  ModelDescription description{
      .layers = {}, .parameters = parameter_count(model), .macs = taps.macs()};
  for (const auto& layer : taps.layers()) description.layers.push_back(describe(layer));
  return description;
}

}  // namespace kelvin
