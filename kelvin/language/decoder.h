#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kelvin/formats/llama2c_file.h"
#include "kelvin/ops/simplex_map.h"
#include "kelvin/ops/tensors.h"

namespace kelvin {

struct DecoderShape : LlamaShape {
  double rotary_base = 10000;
  double norm_epsilon = 1e-5;

  int64_t head_width() const { return width / heads; }
};

// What the heads of one layer did with sequences of n tokens.
struct WatchedAttention {
  int64_t layer = 0;
  torch::Tensor inputs = {};   // [sequences, n, width]: what queries and keys are made of
  torch::Tensor scores = {};   // [sequences, heads, n, n], also of keys that a query does not see
  torch::Tensor weights = {};  // [sequences, heads, n, n]: 0 for these
};

// Keys and values of the tokens so far, so that the next one costs one pass of its own alone.
struct KeyValueCache {
  std::vector<torch::Tensor> keys = {};  // of each layer [sequences, key heads, tokens, head width]
  std::vector<torch::Tensor> values = {};

  int64_t tokens() const { return keys.empty() ? 0 : keys.front().size(2); }
};

struct DecoderPass {
  ScoreMap map = {};  // of scores over the keys that a query sees; none: softmax
  std::function<void(const WatchedAttention&)> watch = {};  // layer by layer; without a cache
  KeyValueCache* cache = nullptr;  // tokens go on behind those it has, and are added to it
};

// A language model of the Llama type: RMS norms, rotary positions, causal attention with scores
// over the root of the head's width, SwiGLU layers, no biases.
class Decoder {
 public:
  // Parameters have the names and the order of LlamaCheckpoint.  An Error that `where` opens and
  // that names what is missing, too much, of the wrong shape or not finite.
  static Decoder from(const DecoderShape& shape, NamedTensors parameters, const std::string& where);

  // Logits [sequences, n, vocabulary] of what follows each of `tokens` [sequences, n], int64.
  // Positions may go on beyond the context it was trained on.
  torch::Tensor logits(const torch::Tensor& tokens, const DecoderPass& pass = {}) const;

  // 2 sigma_max(Q) sigma_max(K) over the root of the head's width, of a layer's heads: times |y|
  // and the largest |x| no spread of scores is larger, with inputs y of the query and x of the
  // keys; rotations keep lengths.
  std::vector<double> spread_factors(int64_t layer) const;

  const DecoderShape& shape() const { return shape_; }

 private:
  struct Layer {
    torch::Tensor attention_norm, query, key, value, output;
    torch::Tensor feed_norm, gate, up, down;
  };

  Decoder() = default;

  torch::Tensor normalised(const torch::Tensor& x, const torch::Tensor& weight) const;
  torch::Tensor attended(const torch::Tensor& x, int64_t layer, const DecoderPass& pass,
                         const std::pair<torch::Tensor, torch::Tensor>& rotation) const;

  DecoderShape shape_;
  torch::Tensor embedding_;
  torch::Tensor classifier_;
  torch::Tensor last_norm_;
  std::vector<Layer> layers_;
};

}  // namespace kelvin
