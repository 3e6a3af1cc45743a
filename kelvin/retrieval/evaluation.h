#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kelvin/retrieval/network.h"

namespace kelvin {

// A map that attention is computed with, whatever the network was trained with.
struct NamedMap {
  std::string name = {};
  ScoreMap map = {};
};

// What a network with one map does on sets of one size; means over the sets.
struct RetrievalQuality {
  double accuracy = 0;
  double entropy = 0;       // in nats, of the weights over their sum
  double top_weight = 0;    // the largest
  double right_weight = 0;  // of the item that the answer is about
  // Weights of the 16 items of the highest priority, the highest first: [sets shown, 16].
  torch::Tensor heat = {};
};

struct RetrievalMeasured {
  std::vector<RetrievalQuality> qualities = {};  // of each map
  double spread = 0;                             // of the scores of a set, mean over the sets
  double largest_spread = 0;
  // Of the sets shown in heat maps, because every item has to go through its second layer for it:
  double spread_bound = 0;          // by the spectral norms of Q and K, mean
  double most_of_spread_bound = 0;  // the largest spread over its bound
  // Sets in which a softmax of the scores is beyond its bounds, or the spread beyond its own.
  int64_t violations = 0;
};

struct RetrievalEvaluation {
  int64_t size = 16;  // items of each set
  int64_t sets = 1024;
  int64_t shown = 32;  // sets with heat maps
  uint64_t seed = 0;
};

// All maps on the same sets, which depend on size and seed alone.  One pass: the items of a few
// sets are held at a time, and each core has sets of its own.
RetrievalMeasured evaluate_retrieval(const RetrievalNetwork& network,
                                     const std::vector<NamedMap>& maps,
                                     const RetrievalEvaluation& options);

// The sets of an evaluation come in blocks of a few, each drawn by itself: work(block, sets) is
// called for all of them, each core with blocks of its own.
int64_t block_count(const RetrievalEvaluation& options);
void for_set_blocks(const RetrievalEvaluation& options, int64_t classes,
                    const std::function<void(int64_t block, const RetrievalSets& sets)>& work);

}  // namespace kelvin
