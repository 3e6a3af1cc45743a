#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kelvin {

// A weight layer that was found in a TorchScript graph.  Numbers are places among the outputs of
// the tapped graph.
struct ScriptLayer {
  std::string name;  // of the module that owns the weight: "layer1.0.conv1"
  torch::Tensor weight;
  torch::Tensor bias;  // undefined if it has none
  int64_t stride = 1;
  int64_t padding = 0;
  size_t input = 0;
  size_t pre_activation = 0;
  size_t before_add = 0;  // 0, which is where the logits are: nothing is added
  size_t output = 0;
};

// A softmax over the last dimension, of the scores of heads if there are four.
struct ScriptAttention {
  std::string name;
  size_t logits = 0;
  size_t weights = 0;
};

// What a TorchScript module computes, as one graph with every weight a constant.
struct ScriptGraph {
  torch::jit::Module frozen = {};  // self: holds what forward itself changes, if anything
  bool overwrites_images = false;
  // self and images to logits; ends a log-softmax or softmax, which is left out.
  std::shared_ptr<torch::jit::Graph> plain;
  // The same to a tuple: logits, then whatever the layers and attention below point at.
  std::shared_ptr<torch::jit::Graph> tapped;
  std::vector<ScriptLayer> layers;       // in order of execution, the classifier last
  std::vector<ScriptLayer> projections;  // on shortcuts: they cost, but are no layers
  std::vector<ScriptAttention> attention;
};

// Finds the weight layers of a module in evaluation mode: linear maps, and convolutions in two
// dimensions without groups or dilation, with one stride and one padding for both, whose weights no
// control flow chooses.  The output of a
// layer is what normalisation, residual additions and activations make of it, as long as nobody
// else looks at what lies between.  An Error, which `where` opens, if no linear map makes the
// logits.
ScriptGraph tapped_graph(const torch::jit::Module& module, const std::string& where);

}  // namespace kelvin
