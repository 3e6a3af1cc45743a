#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "kelvin/model/record.h"
#include "tests/support/measured.h"
#include "tests/support/tensors.h"

namespace kelvin {

// A linear layer [out, in] on input [samples, ..., in], or a convolution.
inline LayerRecord layer_of(const std::string& name, const torch::Tensor& weight,
                            const torch::Tensor& input, int64_t stride = 1, int64_t padding = 0) {
  LayerRecord layer;
  layer.name = name;
  layer.weight = weight;
  layer.input = input;
  layer.pre_activation = weight.dim() == 4 ? torch::conv2d(input, weight, {}, stride, padding)
                                           : input.matmul(weight.t());
  layer.output = layer.pre_activation;
  layer.stride = stride;
  layer.padding = padding;
  return layer;
}

// Zeros as logits unless some are given.
inline Record record_with_layers(std::vector<LayerRecord> layers,
                                 const torch::Tensor& logits = {}) {
  const auto samples = layers.at(0).input.size(0);
  auto record = record_of(logits.defined() ? logits : torch::zeros({samples, 2}),
                          torch::zeros({samples}, torch::kInt64));
  record.layers = std::move(layers);
  return record;
}

// Some samples of a record.
inline Record samples_of(const Record& record, const torch::Tensor& indices) {
  auto part = record;
  part.logits = record.logits.index_select(0, indices);
  part.labels = record.labels.index_select(0, indices);
  for (auto& layer : part.layers) {
    for (auto* tensor : {&layer.input, &layer.pre_activation, &layer.output}) {
      if (tensor->defined()) *tensor = tensor->index_select(0, indices);
    }
  }
  return part;
}

inline Record samples_of(const Record& record, int64_t begin, int64_t end) {
  return samples_of(record, torch::arange(begin, end));
}

// A convolution with stride and padding, a layer on tokens and one on samples.
inline Record small_network(int64_t samples, uint64_t seed) {
  return record_with_layers(
      {layer_of("conv", noise({4, 3, 3, 3}, 900), noise({samples, 3, 6, 5}, seed).relu(), 2, 1),
       layer_of("tokens", noise({5, 4}, 901), noise({samples, 7, 4}, seed + 1)),
       layer_of("linear", noise({3, 8}, 902), noise({samples, 8}, seed + 2))},
      noise({samples, 3}, seed + 3));
}

inline torch::Tensor random_rotation(int64_t dims, uint64_t seed) {
  return std::get<0>(torch::linalg_qr(noise({dims, dims}, seed)));
}

// The only reading of this name and layer; an empty layer is the network's.
inline Reading layer_reading(const Readings& readings, const std::string& name,
                             const std::string& layer) {
  Readings found;
  for (const auto& reading : readings_of(readings, name)) {
    if (reading.layer == layer) found.push_back(reading);
  }
  EXPECT_EQ(found.size(), 1U) << name << " of '" << layer << "'";
  return found.empty() ? Reading{} : found.front();
}

inline double layer_value(const Readings& readings, const std::string& name,
                          const std::string& layer = "") {
  return layer_reading(readings, name, layer).value;
}

inline bool has_reading(const Readings& readings, const std::string& name,
                        const std::string& layer) {
  for (const auto& reading : readings_of(readings, name)) {
    if (reading.layer == layer) return true;
  }
  return false;
}

// Python that gives W and A of a layer: weight [out, in] or [out, in, h, w], A column by column,
// from loops rather than from the unfolding of LibTorch.
inline const char* const kLayerMatricesInPython = R"(
def weight_matrix(w):
    return w.astype(float).reshape(len(w), -1)
def input_matrix(w, a, stride=1, padding=0):
    a = a.astype(float)
    if w.ndim == 2:
        return a.reshape(-1, a.shape[-1]).T
    a = np.pad(a, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    kh, kw = w.shape[2:]
    return np.array([image[:, i:i + kh, j:j + kw].ravel() for image in a
                     for i in range(0, a.shape[2] - kh + 1, stride)
                     for j in range(0, a.shape[3] - kw + 1, stride)]).T
)";

}  // namespace kelvin
