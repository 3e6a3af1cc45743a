#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

namespace kelvin {

enum class Split { train, test };

inline const char* name_of(Split split) { return split == Split::train ? "train" : "test"; }

// One weight layer of one batch.
struct LayerRecord {
  std::string name;
  torch::Tensor weight;
  torch::Tensor bias;  // undefined if the layer has none
  torch::Tensor input;
  torch::Tensor output;
};

// What a model did with one batch; all that measures and detectors ever see.
struct Record {
  Split split = Split::test;
  std::string ood;         // name of the foreign dataset; empty for the one trained on
  int64_t classes = 0;     // of the dataset the labels come from
  torch::Tensor logits;    // [samples, classes of the model]
  torch::Tensor labels;    // [samples]
  torch::Tensor features;  // [samples, dims], the classifier's input; may be undefined
  torch::Tensor weight;    // of the classifier; may be undefined
  torch::Tensor bias;      // of the classifier; may be undefined
  std::vector<LayerRecord> layers = {};  // in order of execution; only if asked for

  bool is_ood() const { return !ood.empty(); }
};

}  // namespace kelvin
