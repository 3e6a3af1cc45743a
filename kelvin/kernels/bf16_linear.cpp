#include "kelvin/kernels/bf16_linear.h"

#include <algorithm>

#include "kelvin/kernels/aligned_vector.h"
#include "kelvin/kernels/bf16_products.h"

namespace kelvin {

bool has_bf16_linear() { return has_bf16_products(); }

#if defined(__x86_64__)

namespace {

constexpr int64_t kLanes = kBf16Lanes;
constexpr int64_t kPanel = 128;  // columns of results whose factors stay near the core
constexpr int64_t kRowsNearby = 96;

// Weights of sixteen outputs, [inputs / 2, 16] pairs of inputs.
KELVIN_BF16 void pack_outputs(const float* weight, int64_t inputs, uint32_t* to) {
  for (int64_t input = 0; input < inputs; input += 2 * kLanes) {
    __m512i rows[kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      const auto* from = weight + i * inputs + input;
      rows[i] = reinterpret_cast<__m512i>(
          _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + kLanes), _mm512_loadu_ps(from)));
    }
    transpose(rows);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      _mm512_storeu_si512(to + (input / 2 + i) * kLanes, rows[i]);
    }
  }
}

// Weights of the inputs [first, last), [inputs / 16, outputs / 2, 16] pairs of outputs.  They are
// read in the order in which they lie.
KELVIN_BF16 void pack_inputs(const Bf16LinearShape& shape, const float* weight, int64_t first,
                             int64_t last, uint32_t* to) {
  for (int64_t output = 0; output < shape.outputs; output += 2, to += kLanes) {
    const auto* from = weight + output * shape.inputs;
    for (auto input = first; input < last; input += kLanes) {
      store_pairs(reinterpret_cast<Bf16*>(to + (input - first) * (shape.outputs / 2)),
                  _mm512_loadu_ps(from + input), _mm512_loadu_ps(from + shape.inputs + input));
    }
  }
}

// `sink` = left panel, where left is [rows, 2 * terms] and the panel [columns / 16, terms, 16]
// pairs.
void multiply_panel(const Bf16* left, int64_t rows, int64_t terms, const uint32_t* panel,
                    int64_t columns, const Bf16Sink& sink) {
  const Bf16Product product{.left = pairs_of(left),
                            .row_step = terms,
                            .term_step = 1,
                            .right = panel,
                            .vector_step = kLanes * terms,
                            .terms = terms};
  for (int64_t first = 0; first < rows; first += kRowsNearby) {
    multiply_rows(product, first, std::min(first + kRowsNearby, rows), columns, sink);
  }
}

// 16 * kVectors columns of the rows [begin, end).
template <int kVectors>
KELVIN_BF16 void pair_columns(const Bf16Rows& rows, int64_t begin, int64_t end, int64_t column,
                              Bf16* pairs, int64_t group_step, float* sums) {
  __m512 total[kVectors];
  for (auto& sum : total) sum = _mm512_setzero_ps();
  const auto* from = rows.data + begin * rows.columns + column;
  for (auto row = begin; row < end; row += 2) {
    const bool is_pair = row + 1 < end;
    // The next columns' turn comes after all of these rows.
    _mm_prefetch(from + kVectors * kLanes, _MM_HINT_T0);
    _mm_prefetch(from + rows.columns + kVectors * kLanes, _MM_HINT_T0);
#pragma GCC unroll 2
    for (int i = 0; i < kVectors; ++i) {
      const auto first = wide(from + i * kLanes);
      const auto second = is_pair ? wide(from + rows.columns + i * kLanes) : _mm512_setzero_ps();
      store_pairs(pairs + i * group_step, first, second);
      total[i] += first + second;
    }
    from += 2 * rows.columns;
    pairs += 2 * kLanes;
  }
  if (sums == nullptr) return;
  for (int i = 0; i < kVectors; ++i) {
    auto* to = sums + column + i * kLanes;
    _mm512_storeu_ps(to, _mm512_loadu_ps(to) + total[i]);
  }
}

// From sixteen columns to the next.
int64_t group_size(int64_t rows) { return rounded_up(rows, 2) * kLanes; }

constexpr uintptr_t kLine = 64;  // bytes of a cache's line
constexpr int kWeightRows = 8;   // outputs, of 32 inputs, whose sums are in registers

KELVIN_BF16 void weight_block(const Bf16LinearShape& shape, const Bf16LinearPairs& pairs,
                              int64_t output, int64_t input, bool is_first, float* gradient) {
  const auto step = group_size(pairs.rows);
  const Bf16Product product{
      .left = pairs_of(pairs.gradients + output / kLanes * step) + output % kLanes,
      .row_step = 1,
      .term_step = kLanes,
      .right = pairs_of(pairs.inputs + input / kLanes * step),
      .vector_step = step / 2,
      .terms = (pairs.rows + 1) / 2,
      .results = gradient + output * shape.inputs + input,
      .result_step = shape.inputs};
  // The optimizer is next to read them, after all other layers.
  const bool is_whole = is_first && pairs.rows == shape.rows;
  if (is_whole && reinterpret_cast<uintptr_t>(gradient) % kLine == 0) {
    bf16_product<kWeightRows, 2, Bf16Results::streamed>(product);
  } else if (is_first) {
    bf16_product<kWeightRows, 2, Bf16Results::replaced>(product);
  } else {
    bf16_product<kWeightRows, 2, Bf16Results::added>(product);
  }
}

}  // namespace

void bf16_linear(const Bf16LinearShape& shape, const Bf16* x, const float* weight,
                 const float* bias, int64_t begin, int64_t end, Bf16* y) {
  const auto terms = shape.inputs / 2;
  auto* panel = thread_scratch<uint32_t>(kPanel * terms);
  for (auto first = begin; first < end; first += kPanel) {
    const auto last = std::min(first + kPanel, end);
    for (auto output = first; output < last; output += kLanes) {
      pack_outputs(weight + output * shape.inputs, shape.inputs, panel + (output - first) * terms);
    }
    multiply_panel(x, shape.rows, terms, panel, last - first,
                   {.results = y + first,
                    .step = shape.outputs,
                    .bias = bias != nullptr ? bias + first : nullptr});
  }
}

void bf16_linear_back(const Bf16LinearShape& shape, const Bf16* gradients, const float* weight,
                      int64_t begin, int64_t end, Bf16* result) {
  const auto terms = shape.outputs / 2;
  auto* panel = thread_scratch<uint32_t>(kPanel * terms);
  for (auto first = begin; first < end; first += kPanel) {
    const auto last = std::min(first + kPanel, end);
    pack_inputs(shape, weight, first, last, panel);
    multiply_panel(gradients, shape.rows, terms, panel, last - first,
                   {.results = result + first, .step = shape.inputs});
  }
}

int64_t bf16_pairs_size(int64_t rows, int64_t columns) {
  return columns / kLanes * group_size(rows);
}

void bf16_pairs(const Bf16Rows& rows, int64_t first, int64_t last, Bf16* pairs, float* sums) {
  const auto step = group_size(rows.end - rows.begin);
  constexpr int64_t kRowsAtOnce = 32;  // rows lie far from each other, on as many pages
  for (auto begin = rows.begin; begin < rows.end; begin += kRowsAtOnce) {
    const auto end = std::min(begin + kRowsAtOnce, rows.end);
    auto* to = pairs + (begin - rows.begin) * kLanes;
    auto column = first;
    for (; column + 2 * kLanes <= last; column += 2 * kLanes) {
      pair_columns<2>(rows, begin, end, column, to + column / kLanes * step, step, sums);
    }
    if (column < last) {
      pair_columns<1>(rows, begin, end, column, to + column / kLanes * step, step, sums);
    }
  }
}

void bf16_linear_weights(const Bf16LinearShape& shape, const Bf16LinearPairs& pairs, bool is_first,
                         int64_t begin, int64_t end, float* gradient) {
  constexpr int64_t kOutputsNearby = 32;
  for (auto first = begin; first < end; first += kOutputsNearby) {
    const auto last = std::min(first + kOutputsNearby, end);
    for (int64_t input = 0; input < shape.inputs; input += 2 * kLanes) {
      for (auto output = first; output < last; output += kWeightRows) {
        weight_block(shape, pairs, output, input, is_first, gradient);
      }
    }
  }
  _mm_sfence();  // what was streamed must be seen by others
}

#else

void bf16_linear(const Bf16LinearShape&, const Bf16*, const float*, const float*, int64_t, int64_t,
                 Bf16*) {
  missing_kernel();
}
void bf16_linear_back(const Bf16LinearShape&, const Bf16*, const float*, int64_t, int64_t, Bf16*) {
  missing_kernel();
}
int64_t bf16_pairs_size(int64_t, int64_t) { missing_kernel(); }
void bf16_pairs(const Bf16Rows&, int64_t, int64_t, Bf16*, float*) { missing_kernel(); }
void bf16_linear_weights(const Bf16LinearShape&, const Bf16LinearPairs&, bool, int64_t, int64_t,
                         float*) {
  missing_kernel();
}

#endif

}  // namespace kelvin
