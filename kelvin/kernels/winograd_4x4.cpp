#include "kelvin/kernels/winograd_4x4.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kelvin/kernels/aligned_vector.h"
#include "kelvin/kernels/winograd_4x4_tiles.h"

namespace kelvin::winograd_4x4_tiles {
namespace {

// Results of some outputs, which are part of maps of so many channels.
struct Results {
  float* data = nullptr;
  int64_t channels = 0;
};

// A^T m, to a row or column of outputs.
KELVIN_INLINE Four output_transform(const Six& m) {
  const Vector a = m.v[1] + m.v[2];
  const Vector b = m.v[1] - m.v[2];
  const Vector c = m.v[3] + m.v[4];
  const Vector d = m.v[3] - m.v[4];
  return {{m.v[0] + a + c, b + 2.0F * d, a + 4.0F * c, b + 8.0F * d + m.v[5]}};
}

// Column `index` of [36, tiles, channels] to the outputs of one tile.
KELVIN_AVX2 void transform_outputs(const WinogradShape& shape, const float* transformed,
                                   const float* bias, const Tile& tile, int64_t step, int64_t index,
                                   const Results& results) {
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

// Weights as outputs_of_tiles reads them, [36, outputs / 16, inputs, 16]; those of the outputs
// [begin, end), multiples of 16.
void transform_all_weights(const WinogradWeights<const float>& weights, const WinogradShape& shape,
                           int64_t begin, int64_t end, float* transformed) {
  const auto step = shape.inputs * shape.outputs;
  for (auto output = begin; output < end; output += kLanes) {
    for (int64_t input = 0; input < shape.inputs; ++input) {
      transform_weights(weights, output, input, step,
                        transformed + output * shape.inputs + input * kLanes);
    }
  }
}

// The outputs of the tiles [begin, end); `bias` may be null.
void outputs_of_tiles(const WinogradShape& shape, const float* maps, const float* transformed,
                      const float* bias, const Results& results, int64_t begin, int64_t end) {
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

}  // namespace
}  // namespace kelvin::winograd_4x4_tiles

namespace kelvin {

namespace tiles = winograd_4x4_tiles;

bool has_winograd_4x4() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") > 0 && __builtin_cpu_supports("fma") > 0;
#else
  return false;
#endif
}

void winograd_4x4_forward(const WinogradShape& shape, const float* maps,
                          const WinogradWeights<const float>& weights, const float* bias,
                          float* results, const WinogradWorkers& workers) {
  tiles::for_parts_of_outputs(shape, [&](int64_t first, const WinogradShape& part) {
    const auto memory = workers.memory_for<float>(tiles::kPoints * part.inputs * part.outputs);
    auto* transformed = memory.get();
    workers.for_outputs(part.outputs, [&](int64_t begin, int64_t end) {
      tiles::transform_all_weights(tiles::from_output(weights, first), part, begin, end,
                                   transformed);
    });
    workers.loop(tiles::tile_count(part), 1, [&](int64_t begin, int64_t end) {
      tiles::outputs_of_tiles(part, maps, transformed, bias != nullptr ? bias + first : nullptr,
                              {.data = results + first, .channels = shape.outputs}, begin, end);
    });
  });
}

}  // namespace kelvin
