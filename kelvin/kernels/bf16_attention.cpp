#include "kelvin/kernels/bf16_attention.h"

#include <algorithm>

#include "kelvin/kernels/aligned_vector.h"
#include "kelvin/kernels/bf16_panels.h"

namespace kelvin {

bool has_bf16_attention() { return has_bf16_products(); }

#if defined(__x86_64__)

namespace {

constexpr int64_t kLanes = kBf16Lanes;

// Makes attention weights of a row of logits; those beyond the last token become zero.
KELVIN_BF16 void softmax_row(float* row, int64_t tokens, float factor) {
  const auto whole = tokens / kLanes * kLanes;
  const auto mask = static_cast<__mmask16>((1U << (tokens - whole)) - 1);
  const auto least = _mm512_set1_ps(-__builtin_inff());
  const auto scale = _mm512_set1_ps(factor);
  auto most = least;
  for (int64_t i = 0; i < whole; i += kLanes) {
    const auto scaled = _mm512_loadu_ps(row + i) * scale;
    _mm512_storeu_ps(row + i, scaled);
    most = _mm512_max_ps(most, scaled);
  }
  if (mask != 0) {
    const auto scaled = _mm512_mask_mul_ps(least, mask, _mm512_loadu_ps(row + whole), scale);
    _mm512_storeu_ps(row + whole, scaled);
    most = _mm512_max_ps(most, scaled);
  }
  const auto highest = _mm512_set1_ps(_mm512_reduce_max_ps(most));
  auto sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < tokens; i += kLanes) {
    const auto weight = exponential(
        _mm512_max_ps(_mm512_set1_ps(kLeastExponent), _mm512_loadu_ps(row + i) - highest));
    _mm512_storeu_ps(row + i, weight);
    sum += weight;
  }
  const auto inverse = _mm512_set1_ps(1 / _mm512_reduce_add_ps(sum));
  for (int64_t i = 0; i < tokens; i += kLanes) {
    _mm512_storeu_ps(row + i, _mm512_loadu_ps(row + i) * inverse);
  }
}

// Turns a row of gradients of attention weights into that of the dot products behind them.
KELVIN_BF16 void softmax_row_back(const float* weights, int64_t columns, float factor,
                                  float* gradients) {
  auto sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < columns; i += kLanes) {
    sum = _mm512_fmadd_ps(_mm512_loadu_ps(weights + i), _mm512_loadu_ps(gradients + i), sum);
  }
  const auto mean = _mm512_set1_ps(_mm512_reduce_add_ps(sum));
  const auto scale = _mm512_set1_ps(factor);
  for (int64_t i = 0; i < columns; i += kLanes) {
    const auto distance = _mm512_loadu_ps(gradients + i) - mean;
    _mm512_storeu_ps(gradients + i, scale * _mm512_loadu_ps(weights + i) * distance);
  }
}

// What one head needs while it is computed.
class HeadWork {
 public:
  explicit HeadWork(const Bf16AttentionShape& shape)
      : shape_(shape),
        columns_(rounded_up(shape.tokens, kLanes)),
        pairs_((shape.tokens + 1) / 2),
        weights_(static_cast<size_t>((shape.tokens + 1) * columns_)),
        rounded_(static_cast<size_t>(shape.tokens * columns_)),
        panel_(static_cast<size_t>(columns_ * shape.width / 2)) {}

  void forward(const Bf16* qkv, int64_t head, Bf16* mixed) {
    const auto to = head_of(mixed, 1, 0, head);
    compute_weights(qkv, head);
    round_weights();
    pack_pairs(part(qkv, 2, head), shape_.tokens, shape_.width, columns_ / 2, panel_.data());
    multiply_rows(by_columns(), 0, shape_.tokens, shape_.width,
                  Bf16Sink{.results = to.data, .step = to.step});
  }

  void backward(const Bf16* qkv, const Bf16* gradients, int64_t head, Bf16* result) {
    slopes_.resize(weights_.size());
    turned_.resize(static_cast<size_t>(pairs_ * columns_));
    const auto seen = head_of(gradients, 1, 0, head);
    compute_weights(qkv, head);
    turn(weights_);
    multiply_turned(seen, head_of(result, 3, 2, head));
    pack_transposed(part(qkv, 2, head), shape_.tokens, shape_.width, panel_.data());
    multiply_rows(by_width(seen), 0, shape_.tokens, columns_,
                  FloatSink{.results = slopes_.data(), .step = columns_});
    for (int64_t row = 0; row < shape_.tokens; ++row) {
      auto* slopes = slopes_.data() + row * columns_;
      softmax_row_back(weights_.data() + row * columns_, columns_, shape_.factor, slopes);
      round_row(slopes, columns_, rounded_.data() + row * columns_);
    }
    const auto queries = head_of(result, 3, 0, head);
    pack_pairs(part(qkv, 1, head), shape_.tokens, shape_.width, columns_ / 2, panel_.data());
    multiply_rows(by_columns(), 0, shape_.tokens, shape_.width,
                  Bf16Sink{.results = queries.data, .step = queries.step});
    turn(slopes_);
    multiply_turned(part(qkv, 0, head), head_of(result, 3, 1, head));
  }

 private:
  // Part `which` of `parts` of [samples, tokens, parts, heads, width].
  template <class Number>
  HeadRows<Number> head_of(Number* numbers, int64_t parts, int64_t which, int64_t head) const {
    const auto step = parts * shape_.heads * shape_.width;
    const auto sample = head / shape_.heads;
    return {.data = numbers + sample * shape_.tokens * step +
                    (which * shape_.heads + head % shape_.heads) * shape_.width,
            .step = step};
  }
  HeadRows<const Bf16> part(const Bf16* qkv, int64_t which, int64_t head) const {
    return head_of(qkv, 3, which, head);
  }

  void compute_weights(const Bf16* qkv, int64_t head) {
    pack_transposed(part(qkv, 1, head), shape_.tokens, shape_.width, panel_.data());
    multiply_rows(by_width(part(qkv, 0, head)), 0, shape_.tokens, columns_,
                  FloatSink{.results = weights_.data(), .step = columns_});
    for (int64_t row = 0; row < shape_.tokens; ++row) {
      softmax_row(weights_.data() + row * columns_, shape_.tokens, shape_.factor);
    }
  }

  void round_weights() {
    for (int64_t row = 0; row < shape_.tokens; ++row) {
      round_row(weights_.data() + row * columns_, columns_, rounded_.data() + row * columns_);
    }
  }

  // Rows of a head times the transposed panel.
  Bf16Product by_width(const HeadRows<const Bf16>& rows) const {
    return {.left = pairs_of(rows.data),
            .row_step = rows.step / 2,
            .term_step = 1,
            .right = panel_.data(),
            .vector_step = shape_.width / 2 * kLanes,
            .terms = shape_.width / 2};
  }

  // Rounded rows times a panel of pairs of tokens.
  Bf16Product by_columns() const {
    return {.left = pairs_of(rounded_.data()),
            .row_step = columns_ / 2,
            .term_step = 1,
            .right = panel_.data(),
            .vector_step = columns_ / 2 * kLanes,
            .terms = columns_ / 2};
  }

  // Pairs of rows of a matrix, the last of which may be one of zeros.
  void turn(AlignedVector<float>& matrix) {
    std::fill_n(matrix.begin() + shape_.tokens * columns_, columns_, 0.0F);
    for (int64_t pair = 0; pair < pairs_; ++pair) {
      const auto* first = matrix.data() + 2 * pair * columns_;
      round_rows(first, first + columns_, columns_, turned_.data() + pair * columns_);
    }
  }

  // The transpose of what was turned times these rows.
  void multiply_turned(const HeadRows<const Bf16>& rows, const HeadRows<Bf16>& to) {
    pack_pairs(rows, shape_.tokens, shape_.width, pairs_, panel_.data());
    multiply_rows({.left = turned_.data(),
                   .row_step = 1,
                   .term_step = columns_,
                   .right = panel_.data(),
                   .vector_step = pairs_ * kLanes,
                   .terms = pairs_},
                  0, shape_.tokens, shape_.width, Bf16Sink{.results = to.data, .step = to.step});
  }

  const Bf16AttentionShape shape_;
  const int64_t columns_;  // tokens and zeros behind them
  const int64_t pairs_;
  AlignedVector<float> weights_;   // [tokens + 1, columns]
  AlignedVector<Bf16> rounded_;    // [tokens, columns]
  AlignedVector<uint32_t> panel_;  // [columns, width / 2], in either order
  // For the gradient only.
  AlignedVector<float> slopes_;     // [tokens + 1, columns]
  AlignedVector<uint32_t> turned_;  // [pairs, columns]
};

}  // namespace

void bf16_attention(const Bf16AttentionShape& shape, const Bf16* qkv, int64_t begin, int64_t end,
                    Bf16* mixed) {
  HeadWork work(shape);
  for (auto head = begin; head < end; ++head) work.forward(qkv, head, mixed);
}

void bf16_attention_back(const Bf16AttentionShape& shape, const Bf16* qkv, const Bf16* gradients,
                         int64_t begin, int64_t end, Bf16* result) {
  HeadWork work(shape);
  for (auto head = begin; head < end; ++head) work.backward(qkv, gradients, head, result);
}

#else

void bf16_attention(const Bf16AttentionShape&, const Bf16*, int64_t, int64_t, Bf16*) {
  missing_kernel();
}
void bf16_attention_back(const Bf16AttentionShape&, const Bf16*, const Bf16*, int64_t, int64_t,
                         Bf16*) {
  missing_kernel();
}

#endif

}  // namespace kelvin
