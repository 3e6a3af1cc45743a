#include <algorithm>
#include <vector>

#include "kelvin/kernels/aligned_vector.h"
#include "kelvin/kernels/winograd_2x2.h"
#include "kelvin/kernels/winograd_2x2_tiles.h"

// The gradient of the weights.  Tiles are transformed and multiplied in blocks of rows, so that
// what is transformed stays near the cores; the sums are gradients of transformed weights, which
// are transformed back at the end.

#if defined(__x86_64__)

namespace kelvin::winograd_2x2_tiles {
namespace {

// A y: the transpose of the output transform.
KELVIN_BF16_INLINE void gradient_transform(const __m512* y, __m512* t) {
  t[0] = y[0];
  t[1] = y[0] + y[1];
  t[2] = y[0] - y[1];
  t[3] = -y[1];
}

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

template <int kRows, int kVectors>
KELVIN_BF16 void multiply_block(const Bf16Product& product, bool adds) {
  if (adds) {
    bf16_product<kRows, kVectors, Bf16Results::added>(product);
  } else {
    bf16_product<kRows, kVectors, Bf16Results::replaced>(product);
  }
}

// Every row of tiles begins with a pair.
int64_t paired_across(const WinogradShape& shape) { return rounded_up(tiles_across(shape), 2); }

// Whether there are so few weights that one core can keep their gradient and a block of tiles in
// its cache: each core has tiles of its own then, and the gradients are added up.  Otherwise all
// cores work on the same block.
bool is_narrow(const WinogradShape& shape) {
  constexpr int64_t kWeights = int64_t{64} * 64;
  return shape.inputs * shape.outputs <= kWeights;
}

// Rows of tiles of a block.
int64_t rows_of_a_block(const WinogradShape& shape) {
  constexpr int64_t kTiles = 512;
  constexpr int64_t kNumbersNearby = 256 << 10;  // that a core keeps beside the sums
  const auto fitting = kNumbersNearby / (kPoints * (shape.inputs + shape.outputs));
  const auto tiles = is_narrow(shape) ? fitting : kTiles;
  return std::max<int64_t>(tiles / paired_across(shape), 1);
}

// Transformed inputs and gradients of outputs of a block.
struct TileBlock {
  PairMatrix inputs;
  PairMatrix gradients;
};

PairMatrix pair_matrix(const WinogradShape& shape, int64_t channels, Bf16* data) {
  const auto tiles = rows_of_a_block(shape) * paired_across(shape);
  return {.data = data, .point_step = channels * tiles + kGap, .group_step = tiles * kLanes};
}

// Numbers of such a matrix.
int64_t pair_matrix_size(const WinogradShape& shape, int64_t channels) {
  return kPoints * pair_matrix(shape, channels, nullptr).point_step;
}

struct GradientInput {
  const WinogradShape& shape;
  const Bf16* maps;
  const Bf16* gradients;
};

// Transforms the rows [begin, end) of a block that begins at row `first`.
void transform_rows(const GradientInput& input, int64_t first, int64_t begin, int64_t end,
                    const TileBlock& block) {
  const auto& shape = input.shape;
  const std::vector<Bf16> zeros(static_cast<size_t>(std::max(shape.inputs, shape.outputs)));
  for (auto row = begin; row < end; ++row) {
    const auto tile = (row - first) * paired_across(shape);
    transform_inputs(shape, input.maps, zeros.data(), row, tile, block.inputs);
    transform_gradients(shape, input.gradients, zeros.data(), row, tile, block.gradients);
  }
}

// Adds the products of so many rows at the points [begin, end) to the sums [16, inputs, outputs],
// or, for the first block, writes them there.
void add_products_of_block(const WinogradShape& shape, const TileBlock& block, int64_t rows,
                           bool is_first, int64_t begin, int64_t end, float* sums) {
  const auto& inputs = block.inputs;
  const auto& outputs = block.gradients;
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
            .results = sums + (point * shape.inputs + input) * shape.outputs + output,
            .result_step = shape.outputs};
        if (is_double) {
          multiply_block<kHalf, 2>(product, !is_first);
        } else {
          multiply_block<kLanes, 1>(product, !is_first);
        }
      }
      output += is_double ? 2 * kLanes : kLanes;
    }
  }
}

// G^T u.
KELVIN_BF16_INLINE void weight_untransform(const __m512* u, __m512* w) {
  const auto half = _mm512_set1_ps(0.5F);
  const auto both = half * (u[1] + u[2]);
  w[0] = u[0] + both;
  w[1] = half * (u[1] - u[2]);
  w[2] = u[3] + both;
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

// The gradient of the weights of the outputs [begin, end), multiples of 16, from `parts` gradients
// of transformed weights, one after the other, which are added up in the first.
void untransform(float* sums, int64_t parts, const WinogradShape& shape, int64_t begin, int64_t end,
                 const WinogradWeights<float>& gradient) {
  const auto step = shape.inputs * shape.outputs;
  WeightBlock block;
  for (auto output = begin; output < end; output += kLanes) {
    for (int64_t input = 0; input < shape.inputs; input += kLanes) {
      auto* corner = sums + input * shape.outputs + output;
      add_up(corner, parts, step, shape.outputs);
      untransform_block(corner, step, shape.outputs, block);
      for_block(block, gradient, output, input, [](float own, float& weight) { weight = own; });
    }
  }
}

// Memory for `count` blocks.
class TileBlocks {
 public:
  TileBlocks(const WinogradShape& shape, int64_t count, const WinogradWorkers& workers)
      : shape_(shape),
        inputs_(workers.memory_for<Bf16>(count * pair_matrix_size(shape, shape.inputs))),
        gradients_(workers.memory_for<Bf16>(count * pair_matrix_size(shape, shape.outputs))) {}

  TileBlock at(int64_t index) const {
    const auto matrix = [&](int64_t channels, Bf16* data) {
      return pair_matrix(shape_, channels, data + index * pair_matrix_size(shape_, channels));
    };
    return {.inputs = matrix(shape_.inputs, inputs_.get()),
            .gradients = matrix(shape_.outputs, gradients_.get())};
  }

 private:
  const WinogradShape& shape_;
  std::shared_ptr<Bf16> inputs_;
  std::shared_ptr<Bf16> gradients_;
};

// Every core has rows and sums of its own.
void sum_apart(const GradientInput& input, int64_t parts, float* sums,
               const WinogradWorkers& workers) {
  const auto& shape = input.shape;
  const auto rows = row_count(shape);
  const auto size = rows_of_a_block(shape);
  const TileBlocks blocks(shape, parts, workers);
  workers.loop(parts, 1, [&](int64_t begin, int64_t end) {
    for (auto part = begin; part < end; ++part) {
      const auto block = blocks.at(part);
      auto* sum = sums + part * kPoints * shape.inputs * shape.outputs;
      const auto start = part * rows / parts;
      const auto stop = (part + 1) * rows / parts;
      for (auto first = start; first < stop; first += size) {
        const auto last = std::min(first + size, stop);
        transform_rows(input, first, first, last, block);
        add_products_of_block(shape, block, last - first, first == start, 0, kPoints, sum);
      }
    }
  });
}

// All cores transform the rows of a block, then each multiplies at points of its own.
void sum_together(const GradientInput& input, float* sums, const WinogradWorkers& workers) {
  const auto& shape = input.shape;
  const auto rows = row_count(shape);
  const auto size = rows_of_a_block(shape);
  const TileBlocks blocks(shape, 1, workers);
  const auto block = blocks.at(0);
  for (int64_t first = 0; first < rows; first += size) {
    const auto count = std::min(size, rows - first);
    workers.loop(count, 1, [&](int64_t begin, int64_t end) {
      transform_rows(input, first, first + begin, first + end, block);
    });
    workers.loop(kPoints, 1, [&](int64_t begin, int64_t end) {
      add_products_of_block(shape, block, count, first == 0, begin, end, sums);
    });
  }
}

}  // namespace
}  // namespace kelvin::winograd_2x2_tiles

#endif

namespace kelvin {

#if defined(__x86_64__)

namespace tiles = winograd_2x2_tiles;

void winograd_2x2_weight_gradient(const WinogradShape& shape, const Bf16* maps,
                                  const Bf16* gradients, const WinogradWeights<float>& gradient,
                                  const WinogradWorkers& workers) {
  const tiles::GradientInput input{.shape = shape, .maps = maps, .gradients = gradients};
  const auto parts =
      tiles::is_narrow(shape) ? std::min(workers.threads, tiles::row_count(shape)) : 1;
  const auto memory =
      workers.memory_for<float>(parts * tiles::kPoints * shape.inputs * shape.outputs);
  auto* sums = memory.get();
  if (parts > 1) {
    tiles::sum_apart(input, parts, sums, workers);
  } else {
    tiles::sum_together(input, sums, workers);
  }
  workers.for_outputs(shape.outputs, [&](int64_t begin, int64_t end) {
    tiles::untransform(sums, parts, shape, begin, end, gradient);
  });
}

#else

void winograd_2x2_weight_gradient(const WinogradShape&, const Bf16*, const Bf16*,
                                  const WinogradWeights<float>&, const WinogradWorkers&) {
  missing_kernel();
}

#endif

}  // namespace kelvin
