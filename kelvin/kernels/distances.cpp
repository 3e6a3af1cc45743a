#include "kelvin/kernels/distances.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

// Everything is inlined into one function per instruction set.
#define KELVIN_INLINE [[gnu::always_inline]] inline

namespace kelvin {
namespace {

constexpr int64_t kLanes = 8;
constexpr int64_t kGroup = kRowsOfGroup;
constexpr int64_t kTile = 6;  // queries whose sums with a group fit into registers
static_assert(kGroup == 2 * kLanes);
using Lanes [[gnu::vector_size(kLanes * sizeof(float))]] = float;
using Flags [[gnu::vector_size(kLanes * sizeof(float))]] = int32_t;
using Bytes [[gnu::vector_size(kLanes)]] = uint8_t;
static_assert(kTile <= 8);

// By reference: how vectors are returned depends on the instruction set.
KELVIN_INLINE void load(const float* from, Lanes& lanes) {
  std::memcpy(&lanes, from, sizeof(lanes));
}

struct Tile {
  const float* queries;     // [width, kTile]
  const float* thresholds;  // [kTile]
  std::vector<ProductHit>* hits;
};

// The lowest byte of each lane of `flags`.
KELVIN_INLINE uint64_t bytes_of(const Flags& flags) {
  const auto bytes = __builtin_convertvector(flags, Bytes);
  uint64_t result = 0;
  std::memcpy(&result, &bytes, sizeof(result));
  return result;
}

// Each lane of `flags` has a bit for each query of the tile that the row reached.
KELVIN_INLINE void append_hits(const Flags& flags, const std::array<Lanes, kTile>& sums,
                               int64_t row, int64_t end, const Tile& tile) {
  for (auto left = bytes_of(flags); left != 0; left &= left - 1) {
    const auto bit = __builtin_ctzll(left);
    const auto lane = bit / 8;
    const auto query = static_cast<size_t>(bit % 8);
    if (row + lane >= end) return;
    tile.hits[query].push_back({static_cast<int32_t>(row + lane), sums[query][lane]});
  }
}

// Products of a tile of queries with one group of rows.
KELVIN_INLINE void run_group(const PackedRows& rows, int64_t row, int64_t end, const Tile& tile) {
  const float* values = rows.values.data() + row * rows.width;
  const float* queries = tile.queries;
  std::array<Lanes, kTile> low = {};
  std::array<Lanes, kTile> high = {};
  for (int64_t i = 0; i < rows.width; ++i, values += kGroup, queries += kTile) {
    Lanes first;
    Lanes second;
    load(values, first);
    load(values + kLanes, second);
    for (size_t query = 0; query < kTile; ++query) {
      low[query] += queries[query] * first;
      high[query] += queries[query] * second;
    }
  }
  Flags in_low = {};
  Flags in_high = {};
  for (size_t query = 0; query < kTile; ++query) {
    const float threshold = tile.thresholds[query];
    in_low |= (low[query] >= threshold) & (1 << query);
    in_high |= (high[query] >= threshold) & (1 << query);
  }
  append_hits(in_low, low, row, end, tile);
  append_hits(in_high, high, row + kLanes, end, tile);
}

KELVIN_INLINE void run_tiles(const PackedRows& rows, int64_t begin, int64_t end,
                             const std::vector<Tile>& tiles) {
  for (const auto& tile : tiles) {
    for (int64_t row = begin; row < end; row += kGroup) run_group(rows, row, end, tile);
  }
}

KELVIN_INLINE float squared_distance(const float* a, const float* b, int64_t dims) {
  std::array<Lanes, 4> sums = {};
  int64_t i = 0;
  for (; i + 4 * kLanes <= dims; i += 4 * kLanes) {
    for (int64_t part = 0; part < 4; ++part) {
      Lanes difference;
      Lanes other;
      load(a + i + part * kLanes, difference);
      load(b + i + part * kLanes, other);
      difference -= other;
      sums[static_cast<size_t>(part)] += difference * difference;
    }
  }
  const auto lanes = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  float sum = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) sum += lanes[lane];
  for (; i < dims; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

KELVIN_INLINE void run_distances(const float* query, const float* rows, int64_t dims,
                                 const ProductHit* hits, int64_t count, float* out) {
  constexpr int64_t kFloatsOfLine = 16;
  const int64_t ahead = 1 + 1024 / (dims + 1);  // rows to ask for before they are needed
  for (int64_t i = 0; i < count; ++i) {
    if (i + ahead < count) {
      const float* next = rows + hits[i + ahead].row * dims;
      for (int64_t at = 0; at < dims; at += kFloatsOfLine) __builtin_prefetch(next + at);
    }
    out[i] = squared_distance(query, rows + hits[i].row * dims, dims);
  }
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void run_tiles_with_avx2(const PackedRows& rows, int64_t begin,
                                                     int64_t end, const std::vector<Tile>& tiles) {
  run_tiles(rows, begin, end, tiles);
}
[[gnu::target("avx2,fma")]] void run_distances_with_avx2(const float* query, const float* rows,
                                                         int64_t dims, const ProductHit* hits,
                                                         int64_t count, float* out) {
  run_distances(query, rows, dims, hits, count, out);
}
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif

int64_t groups_of(int64_t count, int64_t group) { return (count + group - 1) / group; }

// [groups, width, group] of [count, width].
std::vector<float> side_by_side(const float* vectors, int64_t count, int64_t width, int64_t group) {
  std::vector<float> values(static_cast<size_t>(groups_of(count, group) * width * group));
  for (int64_t i = 0; i < count; ++i) {
    float* to = values.data() + i / group * width * group + i % group;
    for (int64_t at = 0; at < width; ++at) to[at * group] = vectors[i * width + at];
  }
  return values;
}

}  // namespace

PackedRows packed_rows(const float* rows, int64_t count, int64_t width) {
  return {.count = count, .width = width, .values = side_by_side(rows, count, width, kGroup)};
}

PackedQueries packed_queries(const float* queries, int64_t count, int64_t width) {
  return {.count = count, .width = width, .values = side_by_side(queries, count, width, kTile)};
}

void append_products_above(const PackedRows& rows, int64_t begin, int64_t end,
                           const PackedQueries& queries, const std::vector<float>& thresholds,
                           std::vector<ProductHit>* hits) {
  const auto count = groups_of(queries.count, kTile);
  // What fills the last tile reaches nothing.
  auto filled = thresholds;
  filled.resize(static_cast<size_t>(count * kTile), std::numeric_limits<float>::quiet_NaN());
  std::vector<Tile> tiles;
  tiles.reserve(static_cast<size_t>(count));
  for (int64_t tile = 0; tile < count; ++tile) {
    tiles.push_back({queries.values.data() + tile * queries.width * kTile,
                     filled.data() + tile * kTile, hits + tile * kTile});
  }
#if defined(__x86_64__)
  if (has_avx2()) return run_tiles_with_avx2(rows, begin, end, tiles);
#endif
  run_tiles(rows, begin, end, tiles);
}

void squared_distances(const float* query, const float* rows, int64_t dims, const ProductHit* hits,
                       int64_t count, float* out) {
#if defined(__x86_64__)
  if (has_avx2()) return run_distances_with_avx2(query, rows, dims, hits, count, out);
#endif
  run_distances(query, rows, dims, hits, count, out);
}

}  // namespace kelvin
