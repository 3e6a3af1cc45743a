#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kelvin/ops/simplex_map.h"
#include "kelvin/ops/tensors.h"
#include "kelvin/retrieval/sets.h"

namespace kelvin {

struct RetrievalShape {
  int64_t width = 128;  // of all hidden layers and of the head
  int64_t classes = 10;
};

// What one attention head makes of sets.
struct RetrievalAnswer {
  torch::Tensor logits = {};   // [sets, classes]
  torch::Tensor scores = {};   // [sets, n]: what the map to the simplex takes; -inf where masked
  torch::Tensor weights = {};  // [sets, n]: what it gives
};

// The network of "softmax is not enough" for max retrieval.  Items (priority beside the one-hot
// class) through psi_x, the query through psi_q, each two layers with a GELU between; one head, Q,
// K and V without biases, whose single query weighs all items; phi, two such layers, to logits.
//
// What an item costs is its first layer alone.  With h_i = gelu(W_1 item_i + b_1) and psi_x(item_i)
// = W_2 h_i + b_2 all that follows is linear up to the next GELU, so that it is done once for a set
// and not for each of its items:
//
//   (Q y) . (K psi_x(item_i)) = (W_2^T K^T Q y) . h_i + (K^T Q y) . b_2
//   sum_i a_i V psi_x(item_i) = V (W_2 sum_i a_i h_i + b_2 sum_i a_i)
//
// The parameters are those of the layers all the same, with the names that PyTorch gives them.
class RetrievalNetwork {
 public:
  // As PyTorch initialises linear layers: U(-1, 1) over the root of the inputs, biases too.
  RetrievalNetwork(const RetrievalShape& shape, uint64_t seed);

  // An Error that names what is missing, too much or of the wrong shape.
  static RetrievalNetwork from(const NamedTensors& parameters, const std::string& where);

  RetrievalAnswer answer(const RetrievalSets& sets, const ScoreMap& map) const;

  // The same in parts, for who looks at one set in several ways.

  // h of items: [sets, n, width].
  torch::Tensor hidden(const RetrievalSets& sets) const;
  torch::Tensor scores(const torch::Tensor& hidden, const RetrievalSets& sets) const;
  torch::Tensor logits(const torch::Tensor& hidden, const torch::Tensor& weights) const;

  // Of each set the most that the spectral norms of Q and K let its scores spread: [sets].
  torch::Tensor score_spread_bounds(const torch::Tensor& hidden, const RetrievalSets& sets) const;

  const RetrievalShape& shape() const { return shape_; }
  // In the order of the layers; shared with the network.
  const std::vector<std::pair<std::string, torch::Tensor>>& parameters() const {
    return parameters_;
  }

 private:
  explicit RetrievalNetwork(const RetrievalShape& shape) : shape_(shape) {}

  const torch::Tensor& at(const char* name) const;
  // W_2 gelu(W_1 x + b_1) + b_2 of the layers NAME.0 and NAME.2.
  torch::Tensor two_layers(const std::string& name, const torch::Tensor& x) const;

  RetrievalShape shape_;
  std::vector<std::pair<std::string, torch::Tensor>> parameters_;
};

}  // namespace kelvin
