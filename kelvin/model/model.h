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

namespace kelvin {

class Head;

// One weight layer seen in a forward pass.  layer_matrices.h turns weight and input into W and A
// with W * A + bias = product.
struct Tap {
  std::string name;
  torch::Tensor weight;        // [out, in] or [out, in, height, width]
  torch::Tensor bias = {};     // [out], or undefined
  torch::Tensor input = {};    // what the weight is applied to: [..., in] or [samples, in, ...]
  torch::Tensor product = {};  // what the layer itself makes of it: [..., out] or maps
  torch::Tensor output = {};   // after normalisation, residual add and activation
  // After normalisation, before what a residual connection adds; undefined where none does.
  torch::Tensor before_add = {};
  int64_t stride = 1;   // of a convolution
  int64_t padding = 0;  // of a convolution
};

// One attention layer seen in a forward pass.
struct AttentionTap {
  std::string name;
  torch::Tensor logits;    // [samples, heads, queries, keys], over the temperature
  torch::Tensor shares;    // what the map to the simplex makes of them; rows sum to 1
  int64_t head_width = 0;  // of each head's queries and keys: bounds the rank of its logits
};

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

  void record(Tap tap);
  // Attention has no weights of its own; its two products cost multiply-adds.
  void record(AttentionTap tap, int64_t macs);
  // Multiply-adds of a weight that is not recorded; `product` is what it produced.
  void count_macs(const torch::Tensor& weight, const torch::Tensor& product);

  // Forward passes end once they recorded this layer, by throwing LayerReached; empty: they do not.
  void end_after(const std::string& layer) { last_layer_ = layer; }

  bool keeps_all_layers() const { return options_.layers; }
  const std::vector<Tap>& layers() const { return layers_; }
  const std::vector<AttentionTap>& attention() const { return attention_; }
  int64_t macs() const { return macs_; }

 private:
  TapOptions options_;
  std::string last_layer_;
  std::vector<Tap> layers_;
  std::vector<AttentionTap> attention_;
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

  std::shared_ptr<Model> build(const ModelShape& shape, Settings& settings) const {
    return read(shape, settings)();
  }
};

Registry<ModelEntry>& models();

int64_t parameter_count(const Model& model);

}  // namespace kelvin
