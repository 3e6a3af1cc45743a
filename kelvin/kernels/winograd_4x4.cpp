#include "kelvin/kernels/winograd_4x4.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kelvin/kernels/aligned_vector.h"

// Everything that is hot is written over vectors of eight channels and inlined into functions that
// are compiled for AVX2 and FMA.

#define KELVIN_INLINE [[gnu::always_inline]] inline
#if defined(__x86_64__)
#define KELVIN_AVX2 __attribute__((target("avx2,fma")))
#else
#define KELVIN_AVX2
#endif

namespace kelvin {
namespace {

constexpr int64_t kPoints = kWinograd4x4Points;
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

// A^T m, to a row or column of outputs.
KELVIN_INLINE Four output_transform(const Six& m) {
  const Vector a = m.v[1] + m.v[2];
  const Vector b = m.v[1] - m.v[2];
  const Vector c = m.v[3] + m.v[4];
  const Vector d = m.v[3] - m.v[4];
  return {{m.v[0] + a + c, b + 2.0F * d, a + 4.0F * c, b + 8.0F * d + m.v[5]}};
}

// A y: the transpose of the output transform.
KELVIN_INLINE Six gradient_transform(const Four& y) {
  const Vector even = y.v[0] + y.v[2];
  const Vector odd = y.v[1] + y.v[3];
  const Vector far_even = y.v[0] + 4.0F * y.v[2];
  const Vector far_odd = 2.0F * y.v[1] + 8.0F * y.v[3];
  return {{y.v[0], even + odd, even - odd, far_even + far_odd, far_even - far_odd, y.v[3]}};
}

struct Tile {
  int64_t image = 0;
  int64_t top = 0;  // of its outputs
  int64_t left = 0;
};

Tile tile_of(const WinogradShape& shape, int64_t index) {
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
const float* pixel_of(const WinogradShape& shape, const PaddedMaps& maps, const Tile& tile,
                      int64_t row, int64_t column) {
  const auto y = tile.top + row;
  const auto x = tile.left + column;
  if (y < 0 || y >= shape.height || x < 0 || x >= shape.width) return maps.zeros;
  return maps.data + ((tile.image * shape.height + y) * shape.width + x) * maps.channels;
}

// Inputs of one tile to row `index` of [36, tiles, channels], where `step` lies between points.
KELVIN_AVX2 void transform_inputs(const WinogradShape& shape, const PaddedMaps& maps,
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

// Gradients of the outputs of one tile, likewise.
KELVIN_AVX2 void transform_gradients(const WinogradShape& shape, const PaddedMaps& maps,
                                     const Tile& tile, int64_t step, int64_t index,
                                     float* transformed) {
  const float* pixels[kStep][kStep];
  for (int64_t row = 0; row < kStep; ++row) {
    for (int64_t column = 0; column < kStep; ++column) {
      pixels[row][column] = pixel_of(shape, maps, tile, row, column);
    }
  }
  auto* to = transformed + index * shape.outputs;
  for (int64_t channel = 0; channel < shape.outputs; channel += kVector, to += kVector) {
    Four rows[kSide];
    for (int64_t column = 0; column < kStep; ++column) {
      Four y;
      for (int64_t row = 0; row < kStep; ++row) y.v[row] = load(pixels[row][column] + channel);
      const auto t = gradient_transform(y);
      for (int64_t row = 0; row < kSide; ++row) rows[row].v[column] = t.v[row];
    }
    for (int64_t row = 0; row < kSide; ++row) {
      const auto t = gradient_transform(rows[row]);
      for (int64_t column = 0; column < kSide; ++column) {
        store(to + (row * kSide + column) * step, t.v[column]);
      }
    }
  }
}

// Column `index` of [36, tiles, channels] to the outputs of one tile.
KELVIN_AVX2 void transform_outputs(const WinogradShape& shape, const float* transformed,
                                   const float* bias, const Tile& tile, int64_t step, int64_t index,
                                   const WinogradResults& results) {
  const auto* from = transformed + index * shape.outputs;
  const auto rows = std::min(kStep, shape.height - tile.top);
  const auto columns = std::min(kStep, shape.width - tile.left);
  auto* corner = results.data + ((tile.image * shape.height + tile.top) * shape.width + tile.left) *
                                    results.channels;
  for (int64_t channel = 0; channel < shape.outputs; channel += kVector) {
    Six halves[kStep];
    for (int64_t column = 0; column < kSide; ++column) {
      Six m;
      for (int64_t row = 0; row < kSide; ++row) {
        m.v[row] = load(from + channel + (row * kSide + column) * step);
      }
      const auto t = output_transform(m);
      for (int64_t row = 0; row < kStep; ++row) halves[row].v[column] = t.v[row];
    }
    const auto added = bias != nullptr ? load(bias + channel) : Vector{};
    for (int64_t row = 0; row < rows; ++row) {
      const auto t = output_transform(halves[row]);
      auto* to = corner + row * shape.width * results.channels + channel;
      for (int64_t column = 0; column < columns; ++column) {
        store(to + column * results.channels, t.v[column] + added);
      }
    }
  }
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
int64_t tiles_at_a_time(const WinogradShape& shape) {
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
int64_t step_of(int64_t tiles, int64_t channels) { return tiles * channels + kLanes; }

using Lanes = std::array<float, kLanes>;

// G w, of a row or column of weights, for sixteen outputs at once.
KELVIN_INLINE std::array<Lanes, kSide> weight_transform(const Lanes& a, const Lanes& b,
                                                        const Lanes& c) {
  std::array<Lanes, kSide> u;
  for (size_t i = 0; i < kLanes; ++i) {
    const float ends = (a[i] + c[i]) * (1.0F / 6);
    const float middle = b[i] * (1.0F / 6);
    const float far = a[i] * (1.0F / 24) + c[i] * (1.0F / 6);
    const float side = b[i] * (1.0F / 12);
    u[0][i] = a[i] * 0.25F;
    u[1][i] = -ends - middle;
    u[2][i] = -ends + middle;
    u[3][i] = far + side;
    u[4][i] = far - side;
    u[5][i] = c[i];
  }
  return u;
}

// G^T u.
KELVIN_INLINE std::array<Lanes, 3> weight_untransform(const std::array<Lanes, kSide>& u) {
  std::array<Lanes, 3> w;
  for (size_t i = 0; i < kLanes; ++i) {
    const float near = u[1][i] + u[2][i];
    const float far = u[3][i] + u[4][i];
    w[0][i] = u[0][i] * 0.25F - near * (1.0F / 6) + far * (1.0F / 24);
    w[1][i] = (u[2][i] - u[1][i]) * (1.0F / 6) + (u[3][i] - u[4][i]) * (1.0F / 12);
    w[2][i] = (far - near) * (1.0F / 6) + u[5][i];
  }
  return w;
}

KELVIN_INLINE Lanes gather(const float* from, int64_t step) {
  Lanes lanes;
  for (int64_t i = 0; i < kLanes; ++i) lanes[static_cast<size_t>(i)] = from[i * step];
  return lanes;
}

// Of sixteen outputs and one input.
KELVIN_AVX2 void transform_weights(const WinogradWeights<const float>& weights, int64_t output,
                                   int64_t input, int64_t step, float* to) {
  const auto* from = weights.data + output * weights.output_step + input * weights.input_step;
  std::array<std::array<Lanes, kSide>, 3> rows;
  for (int64_t row = 0; row < 3; ++row) {
    const auto* line = from + row * weights.row_step;
    rows[static_cast<size_t>(row)] = weight_transform(
        gather(line, weights.output_step), gather(line + weights.column_step, weights.output_step),
        gather(line + 2 * weights.column_step, weights.output_step));
  }
  for (size_t column = 0; column < kSide; ++column) {
    const auto points = weight_transform(rows[0][column], rows[1][column], rows[2][column]);
    for (size_t row = 0; row < kSide; ++row) {
      std::copy(points[row].begin(), points[row].end(),
                to + static_cast<int64_t>(row * kSide + column) * step);
    }
  }
}

// The sum over `parts` of sixteen outputs of one input at one point.
KELVIN_INLINE Lanes added_up(const float* from, int64_t parts, int64_t part_step) {
  Lanes sum;
  std::copy(from, from + kLanes, sum.begin());
  for (int64_t part = 1; part < parts; ++part) {
    for (size_t i = 0; i < kLanes; ++i) sum[i] += from[part * part_step + static_cast<int64_t>(i)];
  }
  return sum;
}

KELVIN_AVX2 void untransform_weights(const float* from, int64_t parts, int64_t point_step,
                                     const WinogradWeights<float>& gradient, float* to) {
  std::array<std::array<Lanes, kSide>, 3> columns;  // [3, 6], transposed
  for (size_t row = 0; row < kSide; ++row) {
    std::array<Lanes, kSide> points;
    for (size_t column = 0; column < kSide; ++column) {
      points[column] = added_up(from + static_cast<int64_t>(row * kSide + column) * point_step,
                                parts, kPoints * point_step);
    }
    const auto three = weight_untransform(points);
    for (size_t column = 0; column < 3; ++column) columns[column][row] = three[column];
  }
  for (size_t column = 0; column < 3; ++column) {
    const auto three = weight_untransform(columns[column]);
    for (size_t row = 0; row < 3; ++row) {
      auto* pixel = to + static_cast<int64_t>(row) * gradient.row_step +
                    static_cast<int64_t>(column) * gradient.column_step;
      for (size_t i = 0; i < kLanes; ++i) {
        pixel[static_cast<int64_t>(i) * gradient.output_step] = three[row][i];
      }
    }
  }
}

}  // namespace

bool has_winograd_4x4() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") > 0 && __builtin_cpu_supports("fma") > 0;
#else
  return false;
#endif
}

void winograd_4x4_weights(const WinogradWeights<const float>& weights, const WinogradShape& shape,
                          int64_t begin, int64_t end, float* transformed) {
  const auto step = shape.inputs * shape.outputs;
  for (auto output = begin; output < end; output += kLanes) {
    for (int64_t input = 0; input < shape.inputs; ++input) {
      transform_weights(weights, output, input, step,
                        transformed + output * shape.inputs + input * kLanes);
    }
  }
}

int64_t winograd_4x4_tiles(const WinogradShape& shape) {
  return shape.images * ((shape.height + kStep - 1) / kStep) * ((shape.width + kStep - 1) / kStep);
}

void winograd_4x4_forward(const WinogradShape& shape, const float* maps, const float* transformed,
                          const float* bias, const WinogradResults& results, int64_t begin,
                          int64_t end) {
  const auto most = std::min(tiles_at_a_time(shape), end - begin);
  auto* inputs = thread_scratch<float, 0>(kPoints * step_of(most, shape.inputs));
  auto* outputs = thread_scratch<float, 1>(kPoints * step_of(most, shape.outputs));
  const std::vector<float> zeros(static_cast<size_t>(shape.inputs));
  const PaddedMaps padded{.data = maps, .channels = shape.inputs, .zeros = zeros.data()};
  for (auto first = begin; first < end; first += most) {
    const auto tiles = std::min(most, end - first);
    const auto input_step = step_of(tiles, shape.inputs);
    const auto output_step = step_of(tiles, shape.outputs);
    for (int64_t i = 0; i < tiles; ++i) {
      transform_inputs(shape, padded, tile_of(shape, first + i), input_step, i, inputs);
    }
    for (int64_t point = 0; point < kPoints; ++point) {
      for (int64_t output = 0; output < shape.outputs; output += kLanes) {
        product_rows<false>({.left = inputs + point * input_step,
                             .row_step = shape.inputs,
                             .term_step = 1,
                             .right = transformed + (point * shape.outputs + output) * shape.inputs,
                             .right_step = kLanes,
                             .terms = shape.inputs,
                             .results = outputs + point * output_step + output,
                             .result_step = shape.outputs},
                            tiles);
      }
    }
    for (int64_t i = 0; i < tiles; ++i) {
      transform_outputs(shape, outputs, bias, tile_of(shape, first + i), output_step, i, results);
    }
  }
}

void winograd_4x4_weight_gradient(const WinogradShape& shape, const float* maps,
                                  const float* gradients, const WinogradShare& share,
                                  float* transformed) {
  const auto [channels, begin, end, first_output, last_output] = share;
  const auto most = std::min(tiles_at_a_time(shape), end - begin);
  auto* inputs = thread_scratch<float, 0>(kPoints * step_of(most, shape.inputs));
  auto* outputs = thread_scratch<float, 1>(kPoints * step_of(most, shape.outputs));
  const std::vector<float> zeros(static_cast<size_t>(std::max(shape.inputs, shape.outputs)));
  const PaddedMaps padded{.data = maps, .channels = shape.inputs, .zeros = zeros.data()};
  const PaddedMaps padded_gradients{.data = gradients, .channels = channels, .zeros = zeros.data()};
  for (auto first = begin; first < end; first += most) {
    const auto tiles = std::min(most, end - first);
    const auto input_step = step_of(tiles, shape.inputs);
    const auto output_step = step_of(tiles, shape.outputs);
    for (int64_t i = 0; i < tiles; ++i) {
      const auto tile = tile_of(shape, first + i);
      transform_inputs(shape, padded, tile, input_step, i, inputs);
      transform_gradients(shape, padded_gradients, tile, output_step, i, outputs);
    }
    for (int64_t point = 0; point < kPoints; ++point) {
      for (auto output = first_output; output < last_output; output += kLanes) {
        const Product product{
            .left = inputs + point * input_step,
            .row_step = 1,
            .term_step = shape.inputs,
            .right = outputs + point * output_step + output,
            .right_step = shape.outputs,
            .terms = tiles,
            .results = transformed + point * shape.inputs * shape.outputs + output,
            .result_step = shape.outputs};
        if (first == begin) {
          product_rows<false>(product, shape.inputs);
        } else {
          product_rows<true>(product, shape.inputs);
        }
      }
    }
  }
}

void winograd_4x4_untransformed(const float* transformed, int64_t parts, const WinogradShape& shape,
                                int64_t begin, int64_t end,
                                const WinogradWeights<float>& gradient) {
  const auto step = shape.inputs * shape.outputs;
  for (auto output = begin; output < end; output += kLanes) {
    for (int64_t input = 0; input < shape.inputs; ++input) {
      untransform_weights(
          transformed + input * shape.outputs + output, parts, step, gradient,
          gradient.data + output * gradient.output_step + input * gradient.input_step);
    }
  }
}

}  // namespace kelvin
