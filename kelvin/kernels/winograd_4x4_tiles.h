#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kelvin/kernels/winograd.h"

// What forward pass and weight gradient of Winograd's F(4x4, 3x3) share: tiles of the feature maps,
// the transform of inputs, products of matrices.  Inner loops are written over vectors of eight
// channels and inlined into functions that are compiled for AVX2 and FMA.

#define KELVIN_INLINE [[gnu::always_inline]] inline
#if defined(__x86_64__)
#define KELVIN_AVX2 __attribute__((target("avx2,fma")))
#else
#define KELVIN_AVX2
#endif

namespace kelvin::winograd_4x4_tiles {

constexpr int64_t kPoints = 36;  // of a transformed tile, 6 x 6
constexpr int64_t kLanes = kWinogradLanes;
constexpr int64_t kStep = 4;  // outputs of a tile along one side
constexpr int64_t kSide = 6;  // inputs of a tile along one side
constexpr int64_t kVector = 8;
constexpr int64_t kRows = 6;  // of a block of results that stays in registers

using Vector [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;

KELVIN_INLINE Vector load(const float* from) { return *reinterpret_cast<const Vector*>(from); }
KELVIN_INLINE void store(float* to, Vector value) { *reinterpret_cast<Vector*>(to) = value; }

struct Six {
  Vector v[6];
};
struct Four {
  Vector v[4];
};

// B^T d, of a row or column of inputs.
KELVIN_INLINE Six input_transform(const Six& d) {
  const Vector even = d.v[4] - 4.0F * d.v[2];
  const Vector odd = d.v[3] - 4.0F * d.v[1];
  const Vector far = d.v[4] - d.v[2];
  const Vector near = 2.0F * (d.v[3] - d.v[1]);
  return {{4.0F * d.v[0] - 5.0F * d.v[2] + d.v[4], even + odd, even - odd, far + near, far - near,
           4.0F * d.v[1] - 5.0F * d.v[3] + d.v[5]}};
}

struct Tile {
  int64_t image = 0;
  int64_t top = 0;  // of its outputs
  int64_t left = 0;
};

inline Tile tile_of(const WinogradShape& shape, int64_t index) {
  const auto across = (shape.width + kStep - 1) / kStep;
  const auto down = (shape.height + kStep - 1) / kStep;
  return {.image = index / (across * down),
          .top = index / across % down * kStep,
          .left = index % across * kStep};
}

// Maps of which so many channels lie side by side, and zeros for what is outside of them.
struct PaddedMaps {
  const float* data = nullptr;
  int64_t channels = 0;
  const float* zeros = nullptr;
};

// Channels of a pixel.
inline const float* pixel_of(const WinogradShape& shape, const PaddedMaps& maps, const Tile& tile,
                             int64_t row, int64_t column) {
  const auto y = tile.top + row;
  const auto x = tile.left + column;
  if (y < 0 || y >= shape.height || x < 0 || x >= shape.width) return maps.zeros;
  return maps.data + ((tile.image * shape.height + y) * shape.width + x) * maps.channels;
}

// Inputs of one tile to row `index` of [36, tiles, channels], where `step` lies between points.
KELVIN_AVX2 inline void transform_inputs(const WinogradShape& shape, const PaddedMaps& maps,
                                         const Tile& tile, int64_t step, int64_t index,
                                         float* transformed) {
  const float* pixels[kSide][kSide];
  for (int64_t row = 0; row < kSide; ++row) {
    for (int64_t column = 0; column < kSide; ++column) {
      pixels[row][column] = pixel_of(shape, maps, tile, row - 1, column - 1);
    }
  }
  auto* to = transformed + index * shape.inputs;
  for (int64_t channel = 0; channel < shape.inputs; channel += kVector, to += kVector) {
    Six rows[kSide];
    for (int64_t column = 0; column < kSide; ++column) {
      Six d;
      for (int64_t row = 0; row < kSide; ++row) d.v[row] = load(pixels[row][column] + channel);
      const auto t = input_transform(d);
      for (int64_t row = 0; row < kSide; ++row) rows[row].v[column] = t.v[row];
    }
    for (int64_t row = 0; row < kSide; ++row) {
      const auto t = input_transform(rows[row]);
      for (int64_t column = 0; column < kSide; ++column) {
        store(to + (row * kSide + column) * step, t.v[column]);
      }
    }
  }
}

// Tiles of all images.
inline int64_t tile_count(const WinogradShape& shape) {
  return shape.images * ((shape.height + kStep - 1) / kStep) * ((shape.width + kStep - 1) / kStep);
}

// results[row, 0..16) (+)= sum over k of left[row, k] * right[k, 0..16); the left matrix has steps
// of its own so that it may be a transposed one.
struct Product {
  const float* left = nullptr;
  int64_t row_step = 0;
  int64_t term_step = 0;
  const float* right = nullptr;
  int64_t right_step = 0;
  int64_t terms = 0;
  float* results = nullptr;
  int64_t result_step = 0;
};

// kCount rows of it, from `first_row` on.
template <int64_t kCount, bool kAdds>
KELVIN_INLINE void product_block(const Product& p, int64_t first_row) {
  const auto* left = p.left + first_row * p.row_step;
  auto* results = p.results + first_row * p.result_step;
  Vector sums[kCount][2];
  for (int64_t row = 0; row < kCount; ++row) {
    for (int64_t half = 0; half < 2; ++half) {
      sums[row][half] = kAdds ? load(results + row * p.result_step + half * kVector) : Vector{};
    }
  }
  for (int64_t k = 0; k < p.terms; ++k) {
    const auto first = load(p.right + k * p.right_step);
    const auto second = load(p.right + k * p.right_step + kVector);
    const auto* factors = left + k * p.term_step;
#pragma GCC unroll 6
    for (int64_t row = 0; row < kCount; ++row) {
      const float factor = factors[row * p.row_step];
      sums[row][0] += factor * first;
      sums[row][1] += factor * second;
    }
  }
  for (int64_t row = 0; row < kCount; ++row) {
    for (int64_t half = 0; half < 2; ++half) {
      store(results + row * p.result_step + half * kVector, sums[row][half]);
    }
  }
}

template <bool kAdds>
KELVIN_AVX2 void product_rows(const Product& p, int64_t rows) {
  int64_t row = 0;
  const auto block = [&]<int64_t kCount>() __attribute__((always_inline)) {
    product_block<kCount, kAdds>(p, row);
    row += kCount;
  };
  while (rows - row >= kRows) block.template operator()<kRows>();
  switch (rows - row) {
    case 5:
      block.template operator()<5>();
      break;
    case 4:
      block.template operator()<4>();
      break;
    case 3:
      block.template operator()<3>();
      break;
    case 2:
      block.template operator()<2>();
      break;
    case 1:
      block.template operator()<1>();
      break;
    default:
      break;
  }
}

// So many tiles at a time that what is made of them stays near the core; more of them where there
// are many weights, which are read anew for each such block.
inline int64_t tiles_at_a_time(const WinogradShape& shape) {
  constexpr int64_t kFloats = 48 << 10;
  const auto fitting = kFloats / (kPoints * (shape.inputs + shape.outputs));
  const auto weights = shape.inputs * shape.outputs;
  constexpr int64_t kFew = int64_t{64} * 64;
  constexpr int64_t kMany = int64_t{256} * 256;
  const int64_t least = weights < kFew ? 30 : weights < kMany ? 48 : 64;
  return std::max(fitting / kRows * kRows, least);
}

// From one point to the next: a little more than its floats, or all points of a tile would share
// few places in the cache.
inline int64_t step_of(int64_t tiles, int64_t channels) { return tiles * channels + kLanes; }

// Sixteen outputs.
using Lanes = std::array<float, kLanes>;

// Outputs that have their turn together.  Transformed weights are four times as many as weights:
// those of all outputs of a wide layer would be what a network needs most memory for.
inline int64_t outputs_at_a_time(const WinogradShape& shape) {
  constexpr int64_t kFloats = 2'500'000;
  const auto fitting = kFloats / (kPoints * shape.inputs) / kLanes;
  return std::max<int64_t>(fitting, 1) * kLanes;
}

// Calls work(first output, shape with a part of the outputs) for all of them.
template <class Work>
void for_parts_of_outputs(const WinogradShape& shape, const Work& work) {
  const auto most = outputs_at_a_time(shape);
  for (int64_t first = 0; first < shape.outputs; first += most) {
    auto part = shape;
    part.outputs = std::min(most, shape.outputs - first);
    work(first, part);
  }
}

template <class Float>
WinogradWeights<Float> from_output(WinogradWeights<Float> weights, int64_t first) {
  weights.data += first * weights.output_step;
  return weights;
}

}  // namespace kelvin::winograd_4x4_tiles
