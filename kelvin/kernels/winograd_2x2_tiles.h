#pragma once

#include <array>
#include <cstdint>

#include "kelvin/kernels/bf16_products.h"
#include "kelvin/kernels/winograd.h"

// What forward pass and weight gradient of Winograd's F(2x2, 3x3) share: tiles of the feature maps,
// the transform of inputs, blocks of weights.

#if defined(__x86_64__)

namespace kelvin::winograd_2x2_tiles {

constexpr int64_t kPoints = 16;  // of a transformed tile, 4 x 4
constexpr int64_t kLanes = kWinogradLanes;
static_assert(kLanes == kBf16Lanes);
constexpr int64_t kStep = 2;  // outputs of a tile along one side
constexpr int kSide = 4;      // inputs of a tile along one side

inline int64_t tiles_across(const WinogradShape& shape) {
  return (shape.width + kStep - 1) / kStep;
}
inline int64_t tiles_down(const WinogradShape& shape) { return (shape.height + kStep - 1) / kStep; }

// A row of tiles.
struct TileRow {
  int64_t image = 0;
  int64_t top = 0;  // of its outputs
};

inline TileRow tile_row(const WinogradShape& shape, int64_t index) {
  const auto down = tiles_down(shape);
  return {.image = index / down, .top = index % down * kStep};
}

// Rows of pixels; outside of the maps they are zeros that do not move.
template <int kCount>
struct Lines {
  std::array<const Bf16*, kCount> start;
  std::array<int64_t, kCount> step;
};

template <int kCount>
Lines<kCount> lines_of(const WinogradShape& shape, const Bf16* maps, int64_t channels,
                       const Bf16* zeros, int64_t image, int64_t top) {
  Lines<kCount> lines;
  for (int row = 0; row < kCount; ++row) {
    const auto y = top + row;
    const bool is_inside = y >= 0 && y < shape.height;
    const auto place = static_cast<size_t>(row);
    lines.start[place] =
        is_inside ? maps + (image * shape.height + y) * shape.width * channels : zeros;
    lines.step[place] = is_inside ? channels : 0;
  }
  return lines;
}

// Rows of tiles of all images.
inline int64_t row_count(const WinogradShape& shape) { return shape.images * tiles_down(shape); }

// B^T d, of a row or column of inputs.
KELVIN_BF16_INLINE void input_transform(const __m512* d, __m512* t) {
  t[0] = d[0] - d[2];
  t[1] = d[1] + d[2];
  t[2] = d[2] - d[1];
  t[3] = d[1] - d[3];
}

// Transforms of one column of inputs.
KELVIN_BF16_INLINE void input_column(const Lines<kSide>& lines, int64_t width, int64_t x,
                                     int64_t channel, __m512* t) {
  __m512 d[kSide];
#pragma GCC unroll 4
  for (int row = 0; row < kSide; ++row) {
    const auto place = static_cast<size_t>(row);
    d[row] = x < width ? wide(lines.start[place] + x * lines.step[place] + channel)
                       : _mm512_setzero_ps();
  }
  input_transform(d, t);
}

// Inputs of one row of tiles, the first of which is number `tile`, to a TileMatrix or PairMatrix.
// Neighbours share two columns.
template <class Matrix>
KELVIN_BF16 void transform_inputs(const WinogradShape& shape, const Bf16* maps, const Bf16* zeros,
                                  int64_t row, int64_t tile, const Matrix& to) {
  constexpr int kTiles = Matrix::kTiles;
  constexpr int kColumns = kStep * kTiles + 2;
  const auto [image, top] = tile_row(shape, row);
  const auto lines = lines_of<kSide>(shape, maps, shape.inputs, zeros, image, top - 1);
  const auto across = tiles_across(shape);
  for (int64_t channel = 0; channel < shape.inputs; channel += kLanes) {
    __m512 columns[kColumns][kSide];
    for (auto& zero : columns[0]) zero = _mm512_setzero_ps();
    input_column(lines, shape.width, 0, channel, columns[1]);
    for (int64_t i = 0; i < across; i += kTiles) {
#pragma GCC unroll 4
      for (int j = 2; j < kColumns; ++j) {
        input_column(lines, shape.width, kStep * i + j - 1, channel, columns[j]);
      }
#pragma GCC unroll 4
      for (int r = 0; r < kSide; ++r) {
        __m512 t[kSide][kTiles];
#pragma GCC unroll 2
        for (int j = 0; j < kTiles; ++j) {
          const __m512 d[kSide] = {columns[kStep * j][r], columns[kStep * j + 1][r],
                                   columns[kStep * j + 2][r], columns[kStep * j + 3][r]};
          __m512 points[kSide];
          input_transform(d, points);
#pragma GCC unroll 4
          for (int column = 0; column < kSide; ++column) t[column][j] = points[column];
        }
#pragma GCC unroll 4
        for (int column = 0; column < kSide; ++column) {
          to.put(r * kSide + column, tile + i, channel, t[column]);
        }
        columns[0][r] = columns[kColumns - 2][r];
        columns[1][r] = columns[kColumns - 1][r];
      }
    }
  }
}

// From one point to the next: a little more than its numbers, or all points of a tile would share
// few places in the cache.
constexpr int64_t kGap = 2 * kLanes;

// Weights of sixteen outputs and sixteen inputs, which are next to each other nowhere else.
struct WeightBlock {
  alignas(64) float data[3][3][kLanes][kLanes];  // [rows, columns, inputs, outputs]
};

// Calls visit(weight of the block, weight where it is) for all of them.
template <class Block, class Float, class Visit>
void for_block(Block& block, const WinogradWeights<Float>& weights, int64_t output, int64_t input,
               const Visit& visit) {
  auto* corner = weights.data + output * weights.output_step + input * weights.input_step;
  for (int64_t i = 0; i < kLanes; ++i) {
    for (int64_t j = 0; j < kLanes; ++j) {
      auto* from = corner + i * weights.output_step + j * weights.input_step;
      for (int64_t row = 0; row < 3; ++row) {
        for (int64_t column = 0; column < 3; ++column) {
          visit(block.data[row][column][j][i],
                from[row * weights.row_step + column * weights.column_step]);
        }
      }
    }
  }
}

}  // namespace kelvin::winograd_2x2_tiles

#endif
