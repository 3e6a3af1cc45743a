#include <algorithm>
#include <array>
#include <vector>

#include "kelvin/kernels/aligned_vector.h"
#include "kelvin/kernels/winograd_4x4.h"
#include "kelvin/kernels/winograd_4x4_tiles.h"

// The gradient of the weights: sums over tiles of products of transformed inputs and gradients,
// which are gradients of transformed weights and transformed back at the end.

namespace kelvin::winograd_4x4_tiles {
namespace {

// A y: the transpose of the output transform.
KELVIN_INLINE Six gradient_transform(const Four& y) {
  const Vector even = y.v[0] + y.v[2];
  const Vector odd = y.v[1] + y.v[3];
  const Vector far_even = y.v[0] + 4.0F * y.v[2];
  const Vector far_odd = 2.0F * y.v[1] + 8.0F * y.v[3];
  return {{y.v[0], even + odd, even - odd, far_even + far_odd, far_even - far_odd, y.v[3]}};
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

// What tiles [begin, end), at least one, add to the gradient of some outputs, multiples of 16.
struct GradientPart {
  int64_t channels = 0;  // of the maps that the gradients of outputs are part of
  int64_t begin = 0;
  int64_t end = 0;
  int64_t first_output = 0;
  int64_t last_output = 0;
};

// That part of the gradient of transformed weights, [36, inputs, outputs].
void sum_tiles(const WinogradShape& shape, const float* maps, const float* gradients,
               const GradientPart& range, float* transformed) {
  const auto [channels, begin, end, first_output, last_output] = range;
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

// The gradient of the weights of the outputs [begin, end), multiples of 16, from `parts` gradients
// of transformed weights, one after the other, which are added up.
void untransform(const float* transformed, int64_t parts, const WinogradShape& shape, int64_t begin,
                 int64_t end, const WinogradWeights<float>& gradient) {
  const auto step = shape.inputs * shape.outputs;
  for (auto output = begin; output < end; output += kLanes) {
    for (int64_t input = 0; input < shape.inputs; ++input) {
      untransform_weights(
          transformed + input * shape.outputs + output, parts, step, gradient,
          gradient.data + output * gradient.output_step + input * gradient.input_step);
    }
  }
}

// The gradient of the weights of all outputs of `shape`, which begin where `gradients` and
// `gradient` do.  Each thread has outputs of its own where they are enough, otherwise tiles of its
// own and a sum.
void sum_gradients(const WinogradShape& shape, const float* maps, const float* gradients,
                   int64_t channels, const WinogradWeights<float>& gradient,
                   const WinogradWorkers& workers) {
  const auto tiles = tile_count(shape);
  const auto floats = kPoints * shape.inputs * shape.outputs;
  const bool splits_outputs = shape.outputs >= workers.threads * 4 * kLanes;
  const auto parts = splits_outputs ? 1 : std::min(workers.threads, tiles);
  const auto memory = workers.memory_for<float>(parts * floats);
  auto* sums = memory.get();
  if (splits_outputs) {
    workers.for_outputs(shape.outputs, [&](int64_t begin, int64_t end) {
      sum_tiles(shape, maps, gradients,
                {.channels = channels,
                 .begin = 0,
                 .end = tiles,
                 .first_output = begin,
                 .last_output = end},
                sums);
    });
  } else {
    workers.loop(parts, 1, [&](int64_t begin, int64_t end) {
      for (auto part = begin; part < end; ++part) {
        sum_tiles(shape, maps, gradients,
                  {.channels = channels,
                   .begin = part * tiles / parts,
                   .end = (part + 1) * tiles / parts,
                   .first_output = 0,
                   .last_output = shape.outputs},
                  sums + part * floats);
      }
    });
  }
  workers.for_outputs(shape.outputs, [&](int64_t begin, int64_t end) {
    untransform(sums, parts, shape, begin, end, gradient);
  });
}

}  // namespace
}  // namespace kelvin::winograd_4x4_tiles

namespace kelvin {

namespace tiles = winograd_4x4_tiles;

void winograd_4x4_weight_gradient(const WinogradShape& shape, const float* maps,
                                  const float* gradients, const WinogradWeights<float>& gradient,
                                  const WinogradWorkers& workers) {
  tiles::for_parts_of_outputs(shape, [&](int64_t first, const WinogradShape& part) {
    tiles::sum_gradients(part, maps, gradients + first, shape.outputs,
                         tiles::from_output(gradient, first), workers);
  });
}

}  // namespace kelvin
