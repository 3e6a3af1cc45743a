#pragma once

#include <torch/types.h>

#include <memory>
#include <string>

#include "kelvin/model/head.h"
#include "kelvin/model/model.h"

namespace kelvin {

// Where a network is cut, and what is put behind the cut.
struct Truncation {
  std::string layer;  // the last to keep
  int64_t pool = 2;   // feature maps are averaged to pool x pool, tokens to one; 0: nothing is
};

// The first layers of a network and a linear classifier on what the last of them hands on.  What
// comes after that layer is neither computed nor among the parameters; what is left keeps its
// names, the classifier, which has a bias whatever the network has, is called `probe`.
class Truncated : public Model {
 public:
  // Takes the network apart.  An Error if it has no such layer.
  Truncated(std::shared_ptr<Model> whole, const Truncation& truncation, const ModelShape& shape);

  torch::Tensor forward(const torch::Tensor& images, Taps* taps = nullptr) override;
  Head* head() override { return &probe_; }

  // Weight [classes, features] and bias [classes] of the classifier.
  void set_probe(const torch::Tensor& weight, const torch::Tensor& bias);

 private:
  torch::Tensor features_of(const torch::Tensor& images, Taps& taps);

  std::shared_ptr<Model> whole_;
  Truncation truncation_;
  Head probe_;
};

}  // namespace kelvin
