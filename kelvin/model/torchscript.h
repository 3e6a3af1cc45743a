#pragma once

#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

#include "kelvin/model/model.h"
#include "kelvin/model/script_graph.h"

namespace kelvin {

// Somebody else's network: a file that torch.jit.save wrote, traced or scripted, with weights and
// code.  It is run as it is, in evaluation mode; its weight layers are found in its graph, so that
// whoever wrote it needs no hooks.  Loading such a file runs its code.
class TorchscriptModel : public Model {
 public:
  TorchscriptModel(const std::string& file, const ModelShape& shape);

  torch::Tensor forward(const torch::Tensor& images, Taps* taps) override;
  void to(torch::Device device, bool non_blocking = false) override;
  using Model::to;

 private:
  void look_for_layers();
  void register_all();
  void record(const std::vector<torch::Tensor>& values, Taps& taps) const;

  std::string file_;
  ModelShape shape_;
  torch::jit::Module module_;
  ScriptGraph graph_;
};

}  // namespace kelvin
