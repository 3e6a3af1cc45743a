#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

namespace kelvin {

enum class Split { train, test };

inline const char* name_of(Split split) { return split == Split::train ? "train" : "test"; }

// One weight layer of one batch, as a model records it and as measures see it.
// ops/layer_matrices.h makes W and A of weight and input, with W * A + bias = pre_activation.
struct LayerRecord {
  std::string name;
  torch::Tensor weight;               // [out, in] or [out, in, height, width]
  torch::Tensor bias = {};            // [out], or undefined
  torch::Tensor input = {};           // what the weight is applied to: [..., in] or maps
  torch::Tensor pre_activation = {};  // weight applied to input, plus bias: [..., out] or maps
  torch::Tensor output = {};          // after normalisation, residual add and activation
  // After normalisation, before what a residual connection adds; undefined where none does.
  torch::Tensor before_add = {};
  // Of the batch's mean loss in the weight; only if a measure asks for it, models leave it
  // undefined.
  torch::Tensor gradient = {};
  int64_t stride = 1;   // of a convolution
  int64_t padding = 0;  // of a convolution
};

// One attention layer of one batch.
struct AttentionRecord {
  std::string name;
  torch::Tensor logits;   // [samples, heads, queries, keys], over the temperature
  torch::Tensor weights;  // what the map to the simplex makes of them; rows sum to 1
  // Of each head's queries and keys: bounds the rank of its logits; 0 if not known.
  int64_t head_width = 0;
};

// What a model did with one batch; all that measures and detectors ever see.
struct Record {
  Split split = Split::test;
  std::string ood;              // name of the OOD dataset; empty for the one trained on
  int64_t classes = 0;          // of the dataset the labels come from
  torch::Tensor logits = {};    // [samples, classes of the model]
  torch::Tensor labels = {};    // [samples]
  torch::Tensor features = {};  // [samples, dims], the classifier's input; may be undefined
  // Of the classifier, logits = features * weight^T + bias; undefined if they are not known, or if
  // a normalisation follows.
  torch::Tensor weight = {};
  torch::Tensor bias = {};
  // [samples] int64, which samples of the split these are, whatever the order; may be undefined
  torch::Tensor indices = {};
  std::vector<LayerRecord> layers = {};         // in order of execution; only if asked for
  std::vector<AttentionRecord> attention = {};  // in order of execution; only if asked for

  bool is_ood() const { return !ood.empty(); }
};

}  // namespace kelvin
