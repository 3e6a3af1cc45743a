#include "kelvin/kernels/winograd_2x2.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "kelvin/kernels/aligned_vector.h"
#include "kelvin/kernels/bf16_products.h"

namespace kelvin {

bool has_winograd_2x2() { return has_bf16_products(); }

#if defined(__x86_64__)

namespace {

constexpr int64_t kPoints = kWinograd2x2Points;
constexpr int64_t kLanes = kWinogradLanes;
static_assert(kLanes == kBf16Lanes);
constexpr int64_t kStep = 2;        // outputs of a tile along one side
constexpr int kSide = 4;            // inputs of a tile along one side
constexpr int64_t kTileBlock = 12;  // tiles whose products stay in registers
constexpr int64_t kPanel = 64;      // outputs that are finished before the next ones begin

int64_t tiles_across(const WinogradShape& shape) { return (shape.width + kStep - 1) / kStep; }
int64_t tiles_down(const WinogradShape& shape) { return (shape.height + kStep - 1) / kStep; }

// A row of tiles.
struct TileRow {
  int64_t image = 0;
  int64_t top = 0;  // of its outputs
};

TileRow tile_row(const WinogradShape& shape, int64_t index) {
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

// B^T d, of a row or column of inputs.
KELVIN_BF16_INLINE void input_transform(const __m512* d, __m512* t) {
  t[0] = d[0] - d[2];
  t[1] = d[1] + d[2];
  t[2] = d[2] - d[1];
  t[3] = d[1] - d[3];
}

// A^T m, to a row or column of outputs.
KELVIN_BF16_INLINE void output_transform(const __m512* m, __m512* y) {
  y[0] = m[0] + m[1] + m[2];
  y[1] = m[1] - m[2] - m[3];
}

// A y: the transpose of the output transform.
KELVIN_BF16_INLINE void gradient_transform(const __m512* y, __m512* t) {
  t[0] = y[0];
  t[1] = y[0] + y[1];
  t[2] = y[0] - y[1];
  t[3] = -y[1];
}

// Where transformed tiles go for products of tiles with weights: [16, tiles, channels].
struct TileMatrix {
  static constexpr int kTiles = 1;  // at a time

  Bf16* data = nullptr;
  int64_t point_step = 0;
  int64_t channels = 0;

  KELVIN_BF16_INLINE void put(int64_t point, int64_t tile, int64_t channel,
                              const __m512* value) const {
    store(data + point * point_step + tile * channels + channel, *value);
  }
};

// Where they go for products of tiles with tiles: [16, channels / 16, tiles / 2, 16, 2].
struct PairMatrix {
  static constexpr int kTiles = 2;

  Bf16* data = nullptr;
  int64_t point_step = 0;
  int64_t group_step = 0;

  KELVIN_BF16_INLINE void put(int64_t point, int64_t tile, int64_t channel,
                              const __m512* values) const {
    store_pairs(data + point * point_step + channel / kLanes * group_step + tile * kLanes,
                values[0], values[1]);
  }
};

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

// Inputs of one row of tiles, the first of which is number `tile`.  Neighbours share two columns.
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

// Gradients of the outputs of one row of tiles, likewise.
KELVIN_BF16 void transform_gradients(const WinogradShape& shape, const Bf16* maps,
                                     const Bf16* zeros, int64_t row, int64_t tile,
                                     const PairMatrix& to) {
  constexpr int kTiles = PairMatrix::kTiles;
  constexpr int kColumns = kStep * kTiles;
  const auto [image, top] = tile_row(shape, row);
  const auto lines = lines_of<kStep>(shape, maps, shape.outputs, zeros, image, top);
  const auto across = tiles_across(shape);
  for (int64_t channel = 0; channel < shape.outputs; channel += kLanes) {
    for (int64_t i = 0; i < across; i += kTiles) {
      __m512 columns[kColumns][kSide];
#pragma GCC unroll 4
      for (int j = 0; j < kColumns; ++j) {
        const auto x = kStep * i + j;
        __m512 y[kStep];
#pragma GCC unroll 2
        for (size_t r = 0; r < kStep; ++r) {
          y[r] = x < shape.width ? wide(lines.start[r] + x * lines.step[r] + channel)
                                 : _mm512_setzero_ps();
        }
        gradient_transform(y, columns[j]);
      }
#pragma GCC unroll 4
      for (int r = 0; r < kSide; ++r) {
        __m512 t[kSide][kTiles];
#pragma GCC unroll 2
        for (int j = 0; j < kTiles; ++j) {
          const __m512 y[kStep] = {columns[kStep * j][r], columns[kStep * j + 1][r]};
          __m512 points[kSide];
          gradient_transform(y, points);
#pragma GCC unroll 4
          for (int column = 0; column < kSide; ++column) t[column][j] = points[column];
        }
#pragma GCC unroll 4
        for (int column = 0; column < kSide; ++column) {
          to.put(r * kSide + column, tile + i, channel, t[column]);
        }
      }
    }
  }
}

// Products at all points for the outputs [first, last), [16, tiles, outputs].
struct ProductMatrix {
  float* data = nullptr;
  int64_t point_step = 0;
  int64_t tile_step = 0;
  int64_t first = 0;
  int64_t last = 0;
};

// These outputs of one row of tiles, the first of which is number `tile`.
KELVIN_BF16 void transform_outputs(const WinogradShape& shape, const ProductMatrix& products,
                                   const float* bias, int64_t row, int64_t tile, Bf16* results) {
  const auto [image, top] = tile_row(shape, row);
  const auto across = tiles_across(shape);
  const auto rows = std::min(kStep, shape.height - top);
  for (int64_t i = 0; i < across; ++i) {
    const auto columns = std::min(kStep, shape.width - kStep * i);
    auto* corner =
        results + ((image * shape.height + top) * shape.width + kStep * i) * shape.outputs;
    const auto* from = products.data + (tile + i) * products.tile_step;
    for (auto channel = products.first; channel < products.last;
         channel += kLanes, from += kLanes) {
      __m512 halves[kStep][kSide];
#pragma GCC unroll 4
      for (int column = 0; column < kSide; ++column) {
        __m512 m[kSide];
#pragma GCC unroll 4
        for (int r = 0; r < kSide; ++r) {
          m[r] = _mm512_loadu_ps(from + (r * kSide + column) * products.point_step);
        }
        __m512 y[kStep];
        output_transform(m, y);
        halves[0][column] = y[0];
        halves[1][column] = y[1];
      }
      const auto added = bias != nullptr ? _mm512_loadu_ps(bias + channel) : _mm512_setzero_ps();
      for (int64_t r = 0; r < rows; ++r) {
        __m512 y[kStep];
        output_transform(halves[r], y);
        auto* to = corner + r * shape.width * shape.outputs + channel;
        store(to, y[0] + added);
        if (columns > 1) store(to + shape.outputs, y[1] + added);
      }
    }
  }
}

// From one point to the next: a little more than its numbers, or all points of a tile would share
// few places in the cache.
constexpr int64_t kGap = 2 * kLanes;

// Rows of tiles at a time: what is made of them stays near the core, and their tiles fill blocks.
int64_t rows_at_a_time(const WinogradShape& shape) {
  constexpr int64_t kTiles = 48;
  const auto across = tiles_across(shape);
  const auto filling = kTileBlock / std::gcd(kTileBlock, across);
  return std::max<int64_t>(kTiles / (across * filling), 1) * filling;
}

// So many tiles at all points.
KELVIN_BF16 void multiply_tiles(const WinogradShape& shape, const TileMatrix& inputs,
                                const Bf16* weights, int64_t tiles, const ProductMatrix& products) {
  const auto terms = shape.inputs / 2;
  for (int64_t point = 0; point < kPoints; ++point) {
    for (auto output = products.first; output < products.last;) {
      const bool is_double = output + 2 * kLanes <= products.last;
      for (int64_t tile = 0; tile < tiles; tile += kTileBlock) {
        const Bf16Product product{
            .left = pairs_of(inputs.data + point * inputs.point_step + tile * shape.inputs),
            .row_step = terms,
            .term_step = 1,
            .right = pairs_of(weights + (point * shape.outputs + output) * shape.inputs),
            .vector_step = terms * kLanes,
            .terms = terms,
            .results = products.data + point * products.point_step + tile * products.tile_step +
                       (output - products.first),
            .result_step = products.tile_step};
        if (is_double) {
          bf16_product<kTileBlock, 2, Bf16Results::replaced>(product);
        } else {
          bf16_product<kTileBlock, 1, Bf16Results::replaced>(product);
        }
      }
      output += is_double ? 2 * kLanes : kLanes;
    }
  }
}

template <int kRows, int kVectors>
KELVIN_BF16 void multiply_share(const Bf16Product& product, bool adds) {
  if (adds) {
    bf16_product<kRows, kVectors, Bf16Results::added>(product);
  } else {
    bf16_product<kRows, kVectors, Bf16Results::replaced>(product);
  }
}

// Every row of tiles begins with a pair.
int64_t paired_across(const WinogradShape& shape) { return rounded_up(tiles_across(shape), 2); }

PairMatrix pair_matrix(const WinogradShape& shape, int64_t channels, Bf16* data) {
  const auto tiles = winograd_2x2_rows_of_a_share(shape) * paired_across(shape);
  return {.data = data, .point_step = channels * tiles + kGap, .group_step = tiles * kLanes};
}

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

// G w, of a row or column of weights.
KELVIN_BF16_INLINE void weight_transform(__m512 a, __m512 b, __m512 c, __m512* u) {
  const auto half = _mm512_set1_ps(0.5F);
  const auto ends = half * (a + c);
  const auto middle = half * b;
  u[0] = a;
  u[1] = ends + middle;
  u[2] = ends - middle;
  u[3] = c;
}

// G^T u.
KELVIN_BF16_INLINE void weight_untransform(const __m512* u, __m512* w) {
  const auto half = _mm512_set1_ps(0.5F);
  const auto both = half * (u[1] + u[2]);
  w[0] = u[0] + both;
  w[1] = half * (u[1] - u[2]);
  w[2] = u[3] + both;
}

// The points of one input.
KELVIN_BF16_INLINE void transform_weights(const WeightBlock& block, int64_t input,
                                          __m512 (&points)[kSide][kSide]) {
  __m512 rows[3][kSide];
  for (int64_t row = 0; row < 3; ++row) {
    weight_transform(_mm512_load_ps(block.data[row][0][input]),
                     _mm512_load_ps(block.data[row][1][input]),
                     _mm512_load_ps(block.data[row][2][input]), rows[row]);
  }
  for (int column = 0; column < kSide; ++column) {
    __m512 u[kSide];
    weight_transform(rows[0][column], rows[1][column], rows[2][column], u);
    for (int row = 0; row < kSide; ++row) points[row][column] = u[row];
  }
}

KELVIN_BF16 void transform_block(const WeightBlock& block, int64_t point_step, Bf16* to) {
  for (int64_t input = 0; input < kLanes; input += 2, to += 2 * kLanes) {
    __m512 first[kSide][kSide];
    __m512 second[kSide][kSide];
    transform_weights(block, input, first);
    transform_weights(block, input + 1, second);
    for (int row = 0; row < kSide; ++row) {
      for (int column = 0; column < kSide; ++column) {
        store_pairs(to + (row * kSide + column) * point_step, first[row][column],
                    second[row][column]);
      }
    }
  }
}

// Adds the same block of all parts to that of the first.
KELVIN_BF16 void add_up(float* first, int64_t parts, int64_t point_step, int64_t input_step) {
  for (int64_t part = 1; part < parts; ++part) {
    for (int64_t point = 0; point < kPoints; ++point) {
      for (int64_t input = 0; input < kLanes; ++input) {
        auto* to = first + point * point_step + input * input_step;
        const auto* from = to + part * kPoints * point_step;
        _mm512_storeu_ps(to, _mm512_loadu_ps(to) + _mm512_loadu_ps(from));
      }
    }
  }
}

KELVIN_BF16 void untransform_block(const float* from, int64_t point_step, int64_t input_step,
                                   WeightBlock& block) {
  for (int64_t input = 0; input < kLanes; ++input, from += input_step) {
    __m512 columns[3][kSide];
    for (int row = 0; row < kSide; ++row) {
      __m512 u[kSide];
      for (int column = 0; column < kSide; ++column) {
        u[column] = _mm512_loadu_ps(from + (row * kSide + column) * point_step);
      }
      __m512 w[3];
      weight_untransform(u, w);
      for (int column = 0; column < 3; ++column) columns[column][row] = w[column];
    }
    for (int column = 0; column < 3; ++column) {
      __m512 w[3];
      weight_untransform(columns[column], w);
      for (int row = 0; row < 3; ++row) _mm512_store_ps(block.data[row][column][input], w[row]);
    }
  }
}

}  // namespace

int64_t winograd_2x2_rows(const WinogradShape& shape) { return shape.images * tiles_down(shape); }

void winograd_2x2_weights(const WinogradWeights<const float>& weights, const WinogradShape& shape,
                          int64_t begin, int64_t end, Bf16* transformed) {
  WeightBlock block;
  for (auto output = begin; output < end; output += kLanes) {
    for (int64_t input = 0; input < shape.inputs; input += kLanes) {
      for_block(block, weights, output, input, [](float& own, float weight) { own = weight; });
      transform_block(block, shape.inputs * shape.outputs,
                      transformed + output * shape.inputs + input * kLanes);
    }
  }
}

void winograd_2x2_forward(const WinogradShape& shape, const Bf16* maps, const Bf16* transformed,
                          const float* bias, Bf16* results, int64_t begin, int64_t end) {
  const auto across = tiles_across(shape);
  const auto most = rows_at_a_time(shape);
  const auto capacity = rounded_up(most * across, kTileBlock);
  const auto input_step = capacity * shape.inputs + kGap;
  const TileMatrix inputs{.data = thread_scratch<Bf16>(kPoints * input_step),
                          .point_step = input_step,
                          .channels = shape.inputs};
  const auto panel = std::min(kPanel, shape.outputs);
  const auto product_step = capacity * panel + kLanes;
  ProductMatrix products{.data = thread_scratch<float>(kPoints * product_step),
                         .point_step = product_step,
                         .tile_step = panel};
  const std::vector<Bf16> zeros(static_cast<size_t>(shape.inputs));
  for (auto first = begin; first < end; first += most) {
    const auto rows = std::min(most, end - first);
    for (int64_t i = 0; i < rows; ++i) {
      transform_inputs(shape, maps, zeros.data(), first + i, i * across, inputs);
    }
    for (int64_t output = 0; output < shape.outputs; output += panel) {
      products.first = output;
      products.last = std::min(output + panel, shape.outputs);
      multiply_tiles(shape, inputs, transformed, rows * across, products);
      for (int64_t i = 0; i < rows; ++i) {
        transform_outputs(shape, products, bias, first + i, i * across, results);
      }
    }
  }
}

bool winograd_2x2_is_narrow(const WinogradShape& shape) {
  constexpr int64_t kWeights = int64_t{64} * 64;
  return shape.inputs * shape.outputs <= kWeights;
}

int64_t winograd_2x2_rows_of_a_share(const WinogradShape& shape) {
  constexpr int64_t kTiles = 512;
  constexpr int64_t kNumbersNearby = 256 << 10;  // that a core keeps beside the sums
  const auto fitting = kNumbersNearby / (kPoints * (shape.inputs + shape.outputs));
  const auto tiles = winograd_2x2_is_narrow(shape) ? fitting : kTiles;
  return std::max<int64_t>(tiles / paired_across(shape), 1);
}

int64_t winograd_2x2_share_size(const WinogradShape& shape, int64_t channels) {
  return kPoints * pair_matrix(shape, channels, nullptr).point_step;
}

void winograd_2x2_share(const WinogradShape& shape, const Bf16* maps, const Bf16* gradients,
                        int64_t first, int64_t begin, int64_t end, const WinogradShareMaps& share) {
  const auto inputs = pair_matrix(shape, shape.inputs, share.inputs);
  const auto outputs = pair_matrix(shape, shape.outputs, share.gradients);
  const std::vector<Bf16> zeros(static_cast<size_t>(std::max(shape.inputs, shape.outputs)));
  for (auto row = begin; row < end; ++row) {
    const auto tile = (row - first) * paired_across(shape);
    transform_inputs(shape, maps, zeros.data(), row, tile, inputs);
    transform_gradients(shape, gradients, zeros.data(), row, tile, outputs);
  }
}

void winograd_2x2_weight_gradient(const WinogradShape& shape, const WinogradShareMaps& share,
                                  int64_t rows, bool is_first, int64_t begin, int64_t end,
                                  float* transformed) {
  const auto inputs = pair_matrix(shape, shape.inputs, share.inputs);
  const auto outputs = pair_matrix(shape, shape.outputs, share.gradients);
  constexpr int64_t kHalf = kLanes / 2;
  for (auto point = begin; point < end; ++point) {
    for (int64_t output = 0; output < shape.outputs;) {
      const bool is_double = output + 2 * kLanes <= shape.outputs;
      for (int64_t input = 0; input < shape.inputs; input += is_double ? kHalf : kLanes) {
        const Bf16Product product{
            .left = pairs_of(inputs.data + point * inputs.point_step +
                             input / kLanes * inputs.group_step) +
                    input % kLanes,
            .row_step = 1,
            .term_step = kLanes,
            .right = pairs_of(outputs.data + point * outputs.point_step +
                              output / kLanes * outputs.group_step),
            .vector_step = outputs.group_step / 2,
            .terms = rows * paired_across(shape) / 2,
            .results = transformed + (point * shape.inputs + input) * shape.outputs + output,
            .result_step = shape.outputs};
        if (is_double) {
          multiply_share<kHalf, 2>(product, !is_first);
        } else {
          multiply_share<kLanes, 1>(product, !is_first);
        }
      }
      output += is_double ? 2 * kLanes : kLanes;
    }
  }
}

void winograd_2x2_untransformed(float* transformed, int64_t parts, const WinogradShape& shape,
                                int64_t begin, int64_t end,
                                const WinogradWeights<float>& gradient) {
  const auto step = shape.inputs * shape.outputs;
  WeightBlock block;
  for (auto output = begin; output < end; output += kLanes) {
    for (int64_t input = 0; input < shape.inputs; input += kLanes) {
      auto* corner = transformed + input * shape.outputs + output;
      add_up(corner, parts, step, shape.outputs);
      untransform_block(corner, step, shape.outputs, block);
      for_block(block, gradient, output, input, [](float own, float& weight) { weight = own; });
    }
  }
}

#else

int64_t winograd_2x2_rows(const WinogradShape&) { missing_kernel(); }
void winograd_2x2_weights(const WinogradWeights<const float>&, const WinogradShape&, int64_t,
                          int64_t, Bf16*) {
  missing_kernel();
}
void winograd_2x2_forward(const WinogradShape&, const Bf16*, const Bf16*, const float*, Bf16*,
                          int64_t, int64_t) {
  missing_kernel();
}
bool winograd_2x2_is_narrow(const WinogradShape&) { missing_kernel(); }
int64_t winograd_2x2_rows_of_a_share(const WinogradShape&) { missing_kernel(); }
int64_t winograd_2x2_share_size(const WinogradShape&, int64_t) { missing_kernel(); }
void winograd_2x2_share(const WinogradShape&, const Bf16*, const Bf16*, int64_t, int64_t, int64_t,
                        const WinogradShareMaps&) {
  missing_kernel();
}
void winograd_2x2_weight_gradient(const WinogradShape&, const WinogradShareMaps&, int64_t, bool,
                                  int64_t, int64_t, float*) {
  missing_kernel();
}
void winograd_2x2_untransformed(float*, int64_t, const WinogradShape&, int64_t, int64_t,
                                const WinogradWeights<float>&) {
  missing_kernel();
}

#endif

}  // namespace kelvin
