#include "kelvin/model/description.h"

#include <torch/torch.h>

#include "kelvin/model/modes.h"

namespace kelvin {
namespace {

std::vector<int64_t> shape_of_one(const torch::Tensor& batch) { return batch[0].sizes().vec(); }

LayerDescription describe(const Tap& tap) {
  Taps alone;
  alone.count_macs(tap.weight, tap.product);
  return {.name = tap.name,
          .weight = tap.weight.sizes().vec(),
          .input = shape_of_one(tap.input),
          .output = shape_of_one(tap.output),
          .parameters = tap.weight.numel() + (tap.bias.defined() ? tap.bias.numel() : 0),
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
  for (const auto& tap : taps.layers()) description.layers.push_back(describe(tap));
  return description;
}

}  // namespace kelvin
