#pragma once

#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <string>

#include "kelvin/model/model.h"
#include "kelvin/ops/simplex_map.h"

namespace kelvin {

struct AttentionOptions {
  int64_t width = 0;       // of a token
  int64_t heads = 1;       // divide the width
  bool bias = true;        // of the linear maps
  double dropout = 0;      // after the projection
  double temperature = 1;  // divides the logits, besides the root of a head's width
  SimplexMap map = {};     // makes attention weights of the logits
  OnePassAttention one_pass = OnePassAttention::none;  // what may be computed in the map's place
};

// The settings attention, which names a map to the simplex, and attention_temperature; the map's
// own settings begin with attention_ as well.
void read_attention(Settings& settings, AttentionOptions& options);

// Self-attention of several heads: each query's weights of all keys weigh the values.  Parameter
// names are timm's.
class Attention : public torch::nn::Module {
 public:
  explicit Attention(const AttentionOptions& options);

  // `tokens` are [samples, tokens, width], and so is `residual`, of all or the first of them;
  // returns `residual` plus what each of its tokens found in `tokens`.  `name` is the layer's full
  // name in the network.
  torch::Tensor forward(const torch::Tensor& tokens, const torch::Tensor& residual,
                        const std::string& name, Taps* taps);

 private:
  // What the weighted values add up to, all heads side by side: [samples, tokens, width].
  torch::Tensor mixed_values(const torch::Tensor& qkv, const std::string& name, Taps* taps) const;

  AttentionOptions options_;
  torch::nn::Linear qkv_;
  torch::nn::Linear projection_;
  torch::nn::Dropout dropout_;
};

}  // namespace kelvin
