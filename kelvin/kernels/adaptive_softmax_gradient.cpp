#include <algorithm>
#include <cmath>

#include "kelvin/kernels/adaptive_softmax.h"
#include "kelvin/kernels/aligned_vector.h"

// With p = softmax(z), q = softmax(beta z), z = x / T and g the gradient of q, the gradient of z is
//   beta w - beta'(H) (sum w z) p (z - mean of z by p),   w = q (g - sum q g),
// because dH/dz = -p (ln p + H) and ln p + H = z - mean of z.  p and q are computed again from the
// logits.

namespace kelvin {
namespace {

// Neither infinite nor a NaN because of that: factors of what may be 0.
float within_floats(double factor) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(factor, -kMost, kMost));
}

template <int kLanes, class Number>
class GradientWork {
 public:
  KELVIN_ROW_INLINE GradientWork(const AdaptiveSoftmaxGradient<Number>& rows, int64_t end)
      : rows_(rows),
        columns_(rows.columns),
        end_(end),
        scratch_(thread_scratch<float>(rounded_up(columns_, kLanes))),
        scale_(power_scale(rows.inverse_temperature)) {}

  KELVIN_ROW_INLINE void run(int64_t row) {
    start_ = row * columns_;
    const auto readable = (rows_.rows - row) * columns_;
    logits_ = {.numbers = rows_.logits + start_, .readable = readable};
    gradient_ = {.numbers = rows_.gradient + start_, .readable = readable};
    const float top = rows_.largest[row];
    const double factor = rows_.inverse_temperature;
    const double beta = static_cast<double>(rows_.beta[row]);
    const float slope = rows_.slope != nullptr ? rows_.slope[row] : 0.0F;

    const auto mean = static_cast<float>(write_weights(top, beta * factor, rows_.top_weight[row]));
    const float scale = within_floats(beta * factor);
    if (slope == 0) {
      write([&](int64_t i) __attribute__((always_inline)) {
        const auto weight = load_lanes<kLanes>(scratch_ + i);
        return scale * (weight * (load_gradient(i) - mean));
      });
      return;
    }
    const double product = write_slopes(top, mean);
    const double sum = static_cast<double>(rows_.sum[row]);
    const float shift =
        within_floats(static_cast<double>(slope) / sum * product * factor * factor * factor);
    const float centre = rows_.mean[row];
    const auto least = all_lanes<kLanes>(scale_.least);
    write([&](int64_t i) __attribute__((always_inline)) {
      const auto d = larger(least, load_logits(i) - top);
      const auto own = load_lanes<kLanes>(scratch_ + i) * scale;
      return own - powers<kLanes>(d, scale_) * (d - centre) * shift;
    });
  }

 private:
  KELVIN_ROW_INLINE Floats<kLanes> load_logits(int64_t i) const {
    return load_at<kLanes>(logits_, i, columns_, -std::numeric_limits<float>::infinity());
  }
  KELVIN_ROW_INLINE Floats<kLanes> load_gradient(int64_t i) const {
    return load_at<kLanes>(gradient_, i, columns_, 0);
  }

  // The sum of what `term` says of all places of vectors.
  template <class Term>
  KELVIN_ROW_INLINE double sum_over(const Term& term) const {
    double total = 0;
    for (int64_t begin = 0; begin < columns_; begin += kRowBlock) {
      const auto end = std::min(begin + kRowBlock, columns_);
      Floats<kLanes> sum = {};
      for (auto i = begin; i < end; i += kLanes) sum += term(i);
      total += sum_of_lanes<kLanes>(sum);
    }
    return total;
  }

  // q to the scratch; returns sum q g.
  KELVIN_ROW_INLINE double write_weights(float top, double factor, float top_weight) const {
    const auto scale = power_scale(factor);
    const auto least = all_lanes<kLanes>(scale.least);
    return sum_over([&](int64_t i) __attribute__((always_inline)) {
      const auto d = larger(least, load_logits(i) - top);
      const auto weight = powers<kLanes>(d, scale) * top_weight;
      store_lanes<kLanes>(scratch_ + i, weight);
      return weight * load_gradient(i);
    });
  }

  // w in place of q; returns the sum of w (x - top).
  KELVIN_ROW_INLINE double write_slopes(float top, float mean) const {
    const auto least = all_lanes<kLanes>(scale_.least);
    return sum_over([&](int64_t i) __attribute__((always_inline)) {
      const auto slope = load_lanes<kLanes>(scratch_ + i) * (load_gradient(i) - mean);
      store_lanes<kLanes>(scratch_ + i, slope);
      return slope * larger(least, load_logits(i) - top);
    });
  }

  template <class Value>
  KELVIN_ROW_INLINE void write(const Value& value) const {
    Number* to = rows_.result + start_;
    int64_t i = 0;
    for (; i + kLanes <= columns_; i += kLanes) store_lanes<kLanes>(to + i, value(i));
    if (i == columns_) return;
    // What is written too much belongs to rows that come later.
    const bool may_write_on = start_ + i + kLanes <= end_ * columns_;
    store_first<kLanes>(to + i, columns_ - i, may_write_on, value(i));
  }

  const AdaptiveSoftmaxGradient<Number>& rows_;
  const int64_t columns_;
  const int64_t end_;
  float* const scratch_;
  const PowerScale scale_;  // without beta
  int64_t start_ = 0;
  ReadRow<Number> logits_;
  ReadRow<Number> gradient_;
};

template <int kLanes, class Number>
KELVIN_ROW_INLINE void run_gradients(const AdaptiveSoftmaxGradient<Number>& rows, int64_t begin,
                                     int64_t end) {
  GradientWork<kLanes, Number> work(rows, end);
  for (auto row = begin; row < end; ++row) work.run(row);
}

#if defined(__x86_64__)
template <class Number>
KELVIN_ROW_AVX512 void run_gradients_with_avx512(const AdaptiveSoftmaxGradient<Number>& rows,
                                                 int64_t begin, int64_t end) {
  run_gradients<16>(rows, begin, end);
}
template <class Number>
KELVIN_ROW_AVX2 void run_gradients_with_avx2(const AdaptiveSoftmaxGradient<Number>& rows,
                                             int64_t begin, int64_t end) {
  run_gradients<8>(rows, begin, end);
}
#endif

}  // namespace

template <class Number>
void adaptive_softmax_gradient(const AdaptiveSoftmaxGradient<Number>& rows, int64_t begin,
                               int64_t end, InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) return run_gradients_with_avx512(rows, begin, end);
  if (set == InstructionSet::avx2) return run_gradients_with_avx2(rows, begin, end);
#endif
  run_gradients<4>(rows, begin, end);
}

template void adaptive_softmax_gradient(const AdaptiveSoftmaxGradient<float>&, int64_t, int64_t,
                                        InstructionSet);
template void adaptive_softmax_gradient(const AdaptiveSoftmaxGradient<Bf16>&, int64_t, int64_t,
                                        InstructionSet);

}  // namespace kelvin
