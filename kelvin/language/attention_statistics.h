#pragma once

#include <cstdint>
#include <vector>

#include "kelvin/language/decoder.h"

namespace kelvin {

// Means over the queries of one head that see so many keys, but for what is called largest.
struct HeadStatistics {
  double queries = 0;
  double spread = 0;  // largest less smallest score that a query sees
  double largest_spread = 0;
  double spread_bound = 0;  // by the spectral norms of Q and K and the lengths of their inputs
  double largest_part_of_bound = 0;
  double entropy = 0;  // in nats, of the weights over their sum
  double log_keys = 0;
  double top_weight = 0;
  double top_weight_bound = 0;  // the largest weight that the spread allows a softmax
  double violations = 0;        // queries with a spread or a largest weight beyond its bound
};

// What heads do over ever more keys, from the passes it is shown.
class AttentionStatistics {
 public:
  // Queries are told apart by the keys they see, the token itself among them: from edges[i] to
  // below edges[i + 1].  Violations of weights are counted if they come from a softmax.
  AttentionStatistics(const Decoder& decoder, std::vector<int64_t> edges, bool is_softmax);

  void update(const WatchedAttention& seen);

  // Of the keys from edges[range] on; nothing but zeros if no query sees so many.
  HeadStatistics of(int64_t layer, int64_t head, size_t range) const;
  size_t ranges() const { return edges_.size() - 1; }
  const std::vector<int64_t>& edges() const { return edges_; }

 private:
  std::vector<int64_t> edges_;
  bool is_softmax_;
  int64_t heads_;
  std::vector<std::vector<double>> factors_;  // of each layer and head
  std::vector<HeadStatistics> sums_;          // layer by layer, head by head, range by range
};

}  // namespace kelvin
