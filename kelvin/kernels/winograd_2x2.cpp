#include "kelvin/kernels/winograd_2x2.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "kelvin/kernels/aligned_vector.h"
#include "kelvin/kernels/winograd_2x2_tiles.h"

#if defined(__x86_64__)

namespace kelvin::winograd_2x2_tiles {
namespace {

constexpr int64_t kTileBlock = 12;  // tiles whose products stay in registers
constexpr int64_t kPanel = 64;      // outputs that are finished before the next ones begin

// A^T m, to a row or column of outputs.
KELVIN_BF16_INLINE void output_transform(const __m512* m, __m512* y) {
  y[0] = m[0] + m[1] + m[2];
  y[1] = m[1] - m[2] - m[3];
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

// Weights as outputs_of_rows reads them, [16, outputs / 16, inputs, 16], pairs of inputs next to
// each other; those of the outputs [begin, end), multiples of 16.
void transform_all_weights(const WinogradWeights<const float>& weights, const WinogradShape& shape,
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

// The outputs of the rows of tiles [begin, end); `bias` may be null.
void outputs_of_rows(const WinogradShape& shape, const Bf16* maps, const Bf16* transformed,
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

}  // namespace
}  // namespace kelvin::winograd_2x2_tiles

#endif

namespace kelvin {

bool has_winograd_2x2() { return has_bf16_products(); }

#if defined(__x86_64__)

namespace tiles = winograd_2x2_tiles;

void winograd_2x2_forward(const WinogradShape& shape, const Bf16* maps,
                          const WinogradWeights<const float>& weights, const float* bias,
                          Bf16* results, const WinogradWorkers& workers) {
  const auto memory = workers.memory_for<Bf16>(tiles::kPoints * shape.inputs * shape.outputs);
  auto* transformed = memory.get();
  workers.for_outputs(shape.outputs, [&](int64_t begin, int64_t end) {
    tiles::transform_all_weights(weights, shape, begin, end, transformed);
  });
  workers.loop(tiles::row_count(shape), 1, [&](int64_t begin, int64_t end) {
    tiles::outputs_of_rows(shape, maps, transformed, bias, results, begin, end);
  });
}

#else

void winograd_2x2_forward(const WinogradShape&, const Bf16*, const WinogradWeights<const float>&,
                          const float*, Bf16*, const WinogradWorkers&) {
  missing_kernel();
}

#endif

}  // namespace kelvin
