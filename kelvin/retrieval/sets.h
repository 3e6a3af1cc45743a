#pragma once

#include <torch/types.h>

#include <cstdint>

namespace kelvin {

// The max-retrieval task of "softmax is not enough", arXiv 2410.01104: sets of items with a
// priority and a class, both uniform at random, and a query that says nothing.  Which class has the
// item of the highest priority?
struct RetrievalSets {
  torch::Tensor priorities = {};  // [sets, n] float32 in [0, 1); 0 beyond a set's size
  torch::Tensor classes = {};     // [sets, n] int64
  torch::Tensor queries = {};     // [sets] float32 in [0, 1)
  torch::Tensor sizes = {};       // [sets] int64: how many items of each row there are
  torch::Tensor labels = {};      // [sets] int64

  // [sets, n]: places beyond a set's size; undefined if there is none.
  torch::Tensor is_masked() const;
};

struct DrawnSets {
  int64_t count = 128;
  int64_t least = 5;  // items of a set: uniform from least to most
  int64_t most = 16;
  int64_t classes = 10;
};

// The same for the same seed, on any number of threads.
RetrievalSets draw_sets(const DrawnSets& wanted, uint64_t seed);

}  // namespace kelvin
