#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kelvin/core/registry.h"
#include "kelvin/core/settings.h"
#include "kelvin/model/record.h"

namespace kelvin {

class Head;

// What taps hold on to: activations of all layers of a large batch can fill the memory.
struct TapOptions {
  bool layers = true;  // all of them; otherwise the last one only
  bool attention = true;
};

// Thrown by taps out of a forward pass, see Taps::end_after.
struct LayerReached {};

// LibTorch modules have no forward hooks, so a model records its weight layers
// itself when it is given taps.  Projection shortcuts cost multiply-adds but are
// not layers.
class Taps {
 public:
  explicit Taps(const TapOptions& options = {}) : options_(options) {}

  void record(LayerRecord layer);
  // Attention has no weights of its own; its two products cost multiply-adds.
  void record(AttentionRecord attention, int64_t macs);
  // Multiply-adds of a weight that is not recorded; `pre_activation` is what it produced.
  void count_macs(const torch::Tensor& weight, const torch::Tensor& pre_activation);

  // Forward passes end once they recorded this layer, by throwing LayerReached; empty: they do not.
  void end_after(const std::string& layer) { last_layer_ = layer; }

  bool keeps_all_layers() const { return options_.layers; }
  const std::vector<LayerRecord>& layers() const { return layers_; }
  const std::vector<AttentionRecord>& attention() const { return attention_; }
  int64_t macs() const { return macs_; }

 private:
  TapOptions options_;
  std::string last_layer_;
  std::vector<LayerRecord> layers_;
  std::vector<AttentionRecord> attention_;
  int64_t macs_ = 0;
};

struct ModelShape {
  int64_t channels = 3;
  int64_t height = 32;
  int64_t width = 32;
  int64_t classes = 10;
};

class Model : public torch::nn::Module {
 public:
  // images [samples, channels, height, width] to logits [samples, classes].  The
  // last recorded layer is the classifier; its input is what detectors call features.
  virtual torch::Tensor forward(const torch::Tensor& images, Taps* taps = nullptr) = 0;

  // The end that makes logits of features; null for a network that has no such end.  What sets the
  // norm of the logits at initialisation works on it.
  virtual Head* head() { return nullptr; }
};

// Parameters are drawn from the global generator: seed it right before.
using ModelBuilder = std::function<std::shared_ptr<Model>()>;

struct ModelEntry {
  std::string summary;
  std::string reference;
  // Reads and checks all settings; no network is built to learn whether a config is right.
  std::function<ModelBuilder(const ModelShape&, Settings&)> read;
  // Of a model with a setting that only the network itself can check, such as the name of a layer.
  bool is_checked_by_building = false;
  // Its network is in a file that a setting names, and nothing is known of it before.
  bool is_of_file = false;

  std::shared_ptr<Model> build(const ModelShape& shape, Settings& settings) const {
    return read(shape, settings)();
  }
};

Registry<ModelEntry>& models();

int64_t parameter_count(const Model& model);

}  // namespace kelvin
