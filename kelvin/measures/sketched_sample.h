#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kelvin/model/record.h"
#include "kelvin/numerics/feature_sketch.h"

namespace kelvin {

struct SampleOptions {
  int64_t samples = 1024;  // of the first ones shown
  int64_t sketch = 4096;   // numbers that a layer's features are projected to, if they are more
  uint64_t seed = 0;       // of the projections, together with the layer's name
};

// What all layers hand on for a few samples, gathered from records.
class SketchedSample {
 public:
  struct Layer {
    std::string name;
    FeatureSketch sketch;
    std::vector<torch::Tensor> batches = {};

    torch::Tensor rows() const { return torch::cat(batches); }  // [samples, width], float32
  };

  // Messages begin with the name of the measure that uses the sample.
  SketchedSample(std::string measure, const SampleOptions& options);

  // Does nothing once there are enough samples.
  void add(const Record& record);
  // Gives back the memory.
  void clear();

  int64_t size() const { return size_; }
  bool is_empty() const { return size_ == 0; }
  const std::vector<Layer>& layers() const { return layers_; }  // in order of execution
  torch::Tensor labels() const { return torch::cat(labels_); }

  // What one holds at most after `samples` samples such as that in `example`.
  static int64_t bytes(const Record& example, int64_t samples, const SampleOptions& options);

 private:
  std::string measure_;
  SampleOptions options_;
  int64_t size_ = 0;
  std::vector<Layer> layers_;
  std::vector<torch::Tensor> labels_;
};

}  // namespace kelvin
