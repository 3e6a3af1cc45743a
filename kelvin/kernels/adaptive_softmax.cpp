#include "kelvin/kernels/adaptive_softmax.h"

#include <algorithm>
#include <type_traits>

#include "kelvin/kernels/aligned_vector.h"
#include "kelvin/kernels/softmax_statistics.h"

// As many rows as there are lanes are computed together: vectors run along the rows, and what is
// one number per row (entropy, beta, sums) is a vector over them.  Between the passes rows stay in
// the caches.

namespace kelvin {
namespace {

constexpr int64_t kGroup = 4096;  // numbers of short rows that are computed together

struct Beta {
  double value = 0;
  double slope = 0;
};

// Without branches, so that the loop around it is one over vectors.  In double precision: the terms
// of the published polynomial are thirty times as large as their sum.
KELVIN_ROW_INLINE Beta beta_of(const AdaptiveCurve& curve, double entropy) {
  double value = curve.coefficients[0];
  double slope = 0;
#pragma GCC unroll 4
  for (size_t i = 1; i < AdaptiveCurve::kTerms; ++i) {
    slope = slope * entropy + value;
    value = value * entropy + curve.coefficients[i];
  }
  const bool is_beyond = entropy > curve.bend;
  const double line = (entropy - curve.bend) * curve.slope_beyond + curve.at_bend;
  value = is_beyond ? line : value;
  slope = is_beyond ? curve.slope_beyond : slope;
  slope = value > curve.floor ? slope : 0;
  value = value > curve.floor ? value : curve.floor;
  const bool is_on = entropy > curve.threshold;
  value = is_on ? value : 1;
  return {.value = entropy == entropy ? value : entropy, .slope = is_on ? slope : 0};
}

struct Sum {
  template <class Vector>
  KELVIN_ROW_INLINE Vector operator()(Vector a, Vector b) const {
    return a + b;
  }
};
struct Larger {
  template <class Vector>
  KELVIN_ROW_INLINE Vector operator()(Vector a, Vector b) const {
    return larger(a, b);
  }
};
struct Smaller {
  template <class Vector>
  KELVIN_ROW_INLINE Vector operator()(Vector a, Vector b) const {
    return a < b ? a : b;
  }
};

// Groups of rows, one after the other.  Rows of so many vectors, if that is not 0: of short ones
// the loops would take longer than the work in them.
template <int kLanes, class Number, int kVectors>
class GroupWork {
 public:
  KELVIN_ROW_INLINE GroupWork(const AdaptiveSoftmaxRows<Number>& rows, int64_t end)
      : rows_(rows),
        any_columns_(rows.columns),
        end_(end),
        size_(std::clamp<int64_t>(kGroup / columns(), 1, kMost)),
        scratch_(kInPlace ? nullptr : thread_scratch<float>(size_ * padded())),
        scale_(power_scale(rows.inverse_temperature)) {}

  KELVIN_ROW_INLINE int64_t size() const { return size_; }

  // Stage by stage for all rows of the group, so that none waits for what one row needs.
  KELVIN_ROW_INLINE void run(int64_t first) {
    first_ = first;
    count_ = std::min(size_, end_ - first);
    if (columns() <= kRowBlock) {
      for (int64_t r = 0; r < count_; r += kLanes) find_largest(r);
      for (int64_t r = 0; r < count_; r += kLanes) add_up(r);
    } else {
      store(statistics_of_long<kLanes>(row(0), columns(), rows_.inverse_temperature, scale_));
    }
    for (int64_t r = 0; r < count_; r += kLanes) find_beta(r);
    for (int64_t r = 0; r < count_; r += kLanes) sharpen(r);
    for (int64_t r = 0; r < count_; ++r) write(r);
    if (rows_.numbers.spread != nullptr) {
      for (int64_t r = 0; r < count_; r += kLanes) find_spread(r);
    }
  }

 private:
  KELVIN_ROW_INLINE int64_t columns() const {
    return kVectors > 0 ? int64_t{kVectors} * kLanes : any_columns_;
  }
  KELVIN_ROW_INLINE int64_t padded() const { return rounded_up(columns(), kLanes); }

  // Whether powers are kept where the result will be, which their computation gives time to fetch.
  static constexpr bool kInPlace = std::is_same_v<Number, float>;
  static constexpr int64_t kMost = int64_t{4} * kLanes;  // rows of a group

  // One number for each row of the group.
  using Each = float[kMost];

  KELVIN_ROW_INLINE ReadRow<Number> row(int64_t r) const {
    return {.numbers = rows_.logits + (first_ + r) * columns(),
            .readable = (rows_.rows - first_ - r) * columns()};
  }

  KELVIN_ROW_INLINE void store(const Statistics<kLanes>& statistics) {
    store_lanes<kLanes>(largest_, statistics.largest);
    store_lanes<kLanes>(sum_, statistics.sum);
    store_lanes<kLanes>(products_, statistics.products);
  }

  // Vectors of the rows from `begin` on, at most kLanes, as `part` makes them, combined to one
  // number each.
  template <class Combine, class Part>
  KELVIN_ROW_INLINE Floats<kLanes> of_rows(int64_t begin, const Part& part) const {
    const auto count = std::min<int64_t>(kLanes, count_ - begin);
    Floats<kLanes> parts[kLanes];
    for (int64_t i = 0; i < count; ++i) parts[i] = part(begin + i);
    for (auto i = count; i < kLanes; ++i) parts[i] = Floats<kLanes>{};
    return combined_lanes<kLanes>(parts, Combine());
  }

  KELVIN_ROW_INLINE void find_largest(int64_t begin) {
    const auto largest = of_rows<Larger>(
        begin, [&](int64_t r) __attribute__((always_inline)) {
          return largest_in<kLanes>(row(r), 0, columns());
        });
    store_lanes<kLanes>(largest_ + begin, largest);
  }

  KELVIN_ROW_INLINE void add_up(int64_t begin) {
    const auto count = std::min<int64_t>(kLanes, count_ - begin);
    Floats<kLanes> sums[kLanes];
    Floats<kLanes> products[kLanes];
    for (int64_t i = 0; i < count; ++i) {
      const auto r = begin + i;
      const auto both = sums_in<kLanes>(row(r), 0, columns(), largest_[r], scale_);
      sums[i] = both.exponentials;
      products[i] = both.products;
    }
    for (auto i = count; i < kLanes; ++i) sums[i] = products[i] = Floats<kLanes>{};
    store_lanes<kLanes>(sum_ + begin, combined_lanes<kLanes>(sums, Sum()));
    store_lanes<kLanes>(products_ + begin, combined_lanes<kLanes>(products, Sum()));
  }

  // To where numbers of rows go, if somebody wants them.
  void hand_out(float* to, int64_t begin, const float* values) const {
    if (to == nullptr) return;
    std::copy_n(values, std::min<int64_t>(kLanes, count_ - begin), to + first_ + begin);
  }

  KELVIN_ROW_INLINE void find_beta(int64_t begin) {
    const double factor = rows_.inverse_temperature;
    const auto curve = rows_.curve;
    alignas(64) float entropies[kLanes], betas[kLanes], slopes[kLanes], sums[kLanes], means[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) {
      const auto r = begin + i;
      const float sum = sum_[r] == 0 ? 1 : sum_[r];  // 0 if all are masked
      const double mean = static_cast<double>(products_[r]) / static_cast<double>(sum);
      const double difference = logarithm(sum) - mean * factor;
      const double entropy = 0 > difference ? 0 : difference;
      const auto beta = beta_of(curve, entropy);
      const double exponent = beta.value * factor * std::numbers::log2e;
      const auto high = static_cast<float>(exponent);
      const float least = kNoPower / high;
      high_[r] = high;
      low_[r] = static_cast<float>(exponent - static_cast<double>(high));
      least_[r] = kLowestNumber > least ? kLowestNumber : least;
      entropies[i] = static_cast<float>(entropy);
      betas[i] = static_cast<float>(beta.value);
      slopes[i] = static_cast<float>(beta.slope);
      sums[i] = sum;
      means[i] = static_cast<float>(mean);
    }
    const auto& wanted = rows_.numbers;
    hand_out(wanted.entropy, begin, entropies);
    hand_out(wanted.beta, begin, betas);
    hand_out(wanted.slope, begin, slopes);
    hand_out(wanted.largest, begin, largest_ + begin);
    hand_out(wanted.sum, begin, sums);
    hand_out(wanted.mean, begin, means);
  }

  KELVIN_ROW_INLINE void sharpen(int64_t begin) {
    const auto sum = of_rows<Sum>(
        begin, [&](int64_t r) __attribute__((always_inline)) { return write_powers(r); });
    const auto top_weight = sum == 0 ? sum : 1 / sum;
    store_lanes<kLanes>(top_weight_ + begin, top_weight);
    hand_out(rows_.numbers.top_weight, begin, top_weight_ + begin);
  }

  KELVIN_ROW_INLINE Number* result(int64_t r) const {
    return rows_.result + (first_ + r) * columns();
  }
  KELVIN_ROW_INLINE float* powers_of(int64_t r) const {
    if constexpr (kInPlace) {
      return result(r);
    } else {
      return scratch_ + r * padded();
    }
  }
  // Whether all lanes may be written at place `i` of a row of results: what is too much belongs to
  // rows that come later.
  KELVIN_ROW_INLINE bool may_write_on(int64_t r, int64_t i) const {
    return (end_ - first_ - r) * columns() >= i + kLanes;
  }

  // Powers of a row; their sum, in whatever lanes.
  KELVIN_ROW_INLINE Floats<kLanes> write_powers(int64_t r) const {
    const PowerScale scale{.high = high_[r], .low = low_[r], .least = least_[r]};
    const auto least = all_lanes<kLanes>(scale.least);
    const float top = largest_[r];
    const auto from = row(r);
    float* to = powers_of(r);
    const auto write_block = [&](int64_t begin, int64_t end) __attribute__((always_inline)) {
      Floats<kLanes> sum = {};
      for_vectors<kLanes>(
          from, begin, end, [&](int64_t i, Floats<kLanes> x) __attribute__((always_inline)) {
            const auto power = powers<kLanes>(larger(least, x - top), scale);
            if (i + kLanes <= columns() || !kInPlace) {
              store_lanes<kLanes>(to + i, power);
            } else {
              store_first<kLanes>(to + i, columns() - i, may_write_on(r, i), power);
            }
            sum += power;
          });
      return sum;
    };
    if (columns() <= kRowBlock) return write_block(0, columns());
    double total = 0;
    for (int64_t begin = 0; begin < columns(); begin += kRowBlock) {
      total += sum_of_lanes<kLanes>(write_block(begin, std::min(begin + kRowBlock, columns())));
    }
    Floats<kLanes> sum = {};
    sum[0] = static_cast<float>(total);
    return sum;
  }

  KELVIN_ROW_INLINE void write(int64_t r) const {
    const float* from = powers_of(r);
    Number* to = result(r);
    const auto factor = all_lanes<kLanes>(top_weight_[r]);
    int64_t i = 0;
    for (; i + kLanes <= columns(); i += kLanes) {
      store_lanes<kLanes>(to + i, load_lanes<kLanes>(from + i) * factor);
    }
    if (i == columns()) return;
    // The other lanes may be powers of the next row.
    const auto count = static_cast<int32_t>(columns() - i);
    const auto powers = may_write_on(r, i) || !kInPlace
                            ? load_lanes<kLanes>(from + i)
                            : load_first<kLanes>(from + i, count, /*may_read_on=*/false, 0);
    store_first<kLanes>(to + i, count, may_write_on(r, i),
                        lane_numbers<kLanes>() < count ? powers * factor : powers);
  }

  KELVIN_ROW_INLINE void find_spread(int64_t begin) const {
    const auto smallest = of_rows<Smaller>(
        begin, [&](int64_t r) __attribute__((always_inline)) {
          return smallest_unmasked<kLanes>(row(r), columns());
        });
    const auto spread = load_lanes<kLanes>(largest_ + begin) - smallest;
    const auto sum = load_lanes<kLanes>(sum_ + begin);
    const auto nan_or_zero = sum * 0.0F;
    alignas(64) float spreads[kLanes];
    store_lanes<kLanes>(spreads, (sum == 0 ? sum : spread) + nan_or_zero);
    hand_out(rows_.numbers.spread, begin, spreads);
  }

  const AdaptiveSoftmaxRows<Number>& rows_;
  const int64_t any_columns_;
  const int64_t end_;
  const int64_t size_;      // rows of a group
  float* const scratch_;    // [size, padded], unless in place
  const PowerScale scale_;  // without beta
  int64_t first_ = 0;
  int64_t count_ = 0;
  alignas(64) Each largest_ = {};
  alignas(64) Each sum_ = {};
  alignas(64) Each products_ = {};
  alignas(64) Each high_ = {};
  alignas(64) Each low_ = {};
  alignas(64) Each least_ = {};
  alignas(64) Each top_weight_ = {};
};

template <int kLanes, class Number>
KELVIN_ROW_INLINE void run_groups(const AdaptiveSoftmaxRows<Number>& rows, int64_t begin,
                                  int64_t end) {
  const auto run = [&]<int kVectors>() __attribute__((always_inline)) {
    GroupWork<kLanes, Number, kVectors> work(rows, end);
    for (auto first = begin; first < end; first += work.size()) work.run(first);
  };
  if (rows.columns == kLanes) return run.template operator()<1>();
  if (rows.columns == 2 * kLanes) return run.template operator()<2>();
  run.template operator()<0>();
}

#if defined(__x86_64__)
template <class Number>
KELVIN_ROW_AVX512 void run_with_avx512(const AdaptiveSoftmaxRows<Number>& rows, int64_t begin,
                                       int64_t end) {
  run_groups<16>(rows, begin, end);
}
template <class Number>
KELVIN_ROW_AVX2 void run_with_avx2(const AdaptiveSoftmaxRows<Number>& rows, int64_t begin,
                                   int64_t end) {
  run_groups<8>(rows, begin, end);
}
#endif

}  // namespace

template <class Number>
void adaptive_softmax_rows(const AdaptiveSoftmaxRows<Number>& rows, int64_t begin, int64_t end,
                           InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) return run_with_avx512(rows, begin, end);
  if (set == InstructionSet::avx2) return run_with_avx2(rows, begin, end);
#endif
  run_groups<4>(rows, begin, end);
}

template void adaptive_softmax_rows(const AdaptiveSoftmaxRows<float>&, int64_t, int64_t,
                                    InstructionSet);
template void adaptive_softmax_rows(const AdaptiveSoftmaxRows<Bf16>&, int64_t, int64_t,
                                    InstructionSet);

}  // namespace kelvin
