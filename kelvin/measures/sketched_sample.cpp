#include "kelvin/measures/sketched_sample.h"

#include <torch/types.h>

#include <algorithm>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/ops/layer_matrices.h"

namespace kelvin {

SketchedSample::SketchedSample(std::string measure, const SampleOptions& options)
    : measure_(std::move(measure)), options_(options) {
  check(options.samples > 0 && options.sketch > 0, measure_,
        ": samples and sketch must be above 0, got ", options.samples, " and ", options.sketch);
}

void SketchedSample::add(const Record& record) {
  check(!record.layers.empty(), measure_, ": needs records of layers, got none");
  if (size_ >= options_.samples) return;
  const auto wanted = std::min(options_.samples - size_, record.labels.size(0));
  for (size_t i = 0; i < record.layers.size(); ++i) {
    const auto& layer = record.layers[i];
    const auto rows = feature_rows(layer.output.narrow(0, 0, wanted));
    if (i == layers_.size()) {
      layers_.push_back({.name = layer.name,
                         .sketch = FeatureSketch(rows.size(1), options_.sketch,
                                                 derive_seed(options_.seed, layer.name))});
    }
    auto& seen = layers_[i];
    check(seen.name == layer.name && seen.sketch.dims() == rows.size(1), measure_,
          ": every batch must have the same layers; '", seen.name, "' of ", seen.sketch.dims(),
          " features became '", layer.name, "' of ", rows.size(1));
    // The sum of a row is not finite as soon as one number is not.
    check(torch::isfinite(rows.sum(1)).all().item<bool>(), measure_, ": layer '", layer.name,
          "' must be finite, has a NaN or an infinity");
    // A copy even if nothing was projected: the network's tensor holds more than these rows.
    seen.batches.push_back(seen.sketch.apply(rows).to(torch::kFloat32).clone());
  }
  labels_.push_back(record.labels.narrow(0, 0, wanted).clone());
  size_ += wanted;
}

void SketchedSample::clear() {
  layers_.clear();
  labels_.clear();
  size_ = 0;
}

int64_t SketchedSample::bytes(const Record& example, int64_t samples,
                              const SampleOptions& options) {
  const auto rows = std::min(samples, options.samples);
  int64_t total = 0;
  for (const auto& layer : example.layers) {
    const auto dims = layer.output.numel() / layer.output.size(0);
    total += rows * std::min(dims, options.sketch) * static_cast<int64_t>(sizeof(float));
  }
  return total;
}

}  // namespace kelvin
