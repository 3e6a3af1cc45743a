#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kelvin/kernels/adaptive_attention.h"
#include "kelvin/kernels/aligned_vector.h"

namespace kelvin {

// Of a block of queries, a strip holds a row for each of them and a column for each key.  Columns
// come in whole vectors; those behind the last key are masked.
struct QueryBlock {
  int64_t head = 0;
  int64_t first = 0;
  int64_t count = 0;
  int64_t keys = 0;     // up to the last that any of the queries sees
  int64_t columns = 0;  // and what fills up the last vector
};

// Blocks of as many queries, a multiple of `unit`, as have a strip that stays in a cache.
class QueryBlocks {
 public:
  template <class Number>
  QueryBlocks(const AdaptiveAttention<Number>& attention, int64_t unit, int64_t lanes)
      : query_count_(attention.query_count),
        key_count_(attention.key_count),
        lanes_(lanes),
        is_causal_(attention.mask.is_causal) {
    constexpr int64_t kStripNumbers = 131072;  // half of a usual second cache
    constexpr int64_t kMostQueries = 64;
    const auto fitting = std::clamp(kStripNumbers / key_count_, unit, kMostQueries);
    queries_ = std::min(fitting / unit * unit, query_count_);
  }

  int64_t queries() const { return queries_; }  // of one block, but for a head's last
  int64_t of_head() const { return (query_count_ + queries_ - 1) / queries_; }

  // Counted over all heads.
  QueryBlock at(int64_t index) const {
    const auto first = index % of_head() * queries_;
    const auto count = std::min(queries_, query_count_ - first);
    const auto keys = is_causal_ ? std::min(key_count_, first + count) : key_count_;
    return {.head = index / of_head(),
            .first = first,
            .count = count,
            .keys = keys,
            .columns = rounded_up(keys, lanes_)};
  }

 private:
  int64_t query_count_;
  int64_t key_count_;
  int64_t lanes_;
  bool is_causal_;
  int64_t queries_;
};

// Hides keys from queries in a strip of logits.
inline void mask_strip(const AttentionMask& mask, int64_t heads, const QueryBlock& block,
                       float* logits) {
  constexpr float kMaskedLogit = -std::numeric_limits<float>::infinity();
  const auto* of_head = mask.bytes == nullptr ? nullptr
                                              : mask.bytes + block.head / heads * mask.sample_step +
                                                    block.head % heads * mask.head_step;
  for (int64_t i = 0; i < block.count; ++i, logits += block.columns) {
    const auto query = block.first + i;
    if (of_head != nullptr) {
      const auto* seen = of_head + query * mask.query_step;
      for (int64_t key = 0; key < block.keys; ++key) {
        if (seen[key] == 0) logits[key] = kMaskedLogit;
      }
    }
    const auto seen_keys = mask.is_causal ? std::min(block.keys, query + 1) : block.keys;
    std::fill(logits + seen_keys, logits + block.columns, kMaskedLogit);
  }
}

}  // namespace kelvin
