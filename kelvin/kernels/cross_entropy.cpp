#include "kelvin/kernels/cross_entropy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

// Plain loops that the compiler turns into vectors.  Sums of floating-point numbers go over a fixed
// number of lanes, so that vectors of any width give the same bits.  Everything is inlined into one
// function per instruction set.

#define KELVIN_INLINE [[gnu::always_inline]] inline

namespace kelvin {
namespace {

constexpr int64_t kLanes = 16;

template <class Scalar>
struct Bits;
template <>
struct Bits<float> {
  using Whole = int32_t;
  static constexpr float kLowest = -87.3F;  // exp of less is no normal number: taken as 0
};
template <>
struct Bits<double> {
  using Whole = int64_t;
  static constexpr double kLowest = -708;
};

template <class Scalar>
using Whole = typename Bits<Scalar>::Whole;

// Whole numbers in the order of the numbers they stand for; NaNs lie outside of the infinities.
// Their maximum may be taken in any order, which that of floating-point numbers may not.
template <class Scalar>
KELVIN_INLINE Whole<Scalar> key_of(Scalar number) {
  const auto bits = std::bit_cast<Whole<Scalar>>(number + Scalar{0});  // -0 becomes 0
  return bits ^ ((bits >> (8 * sizeof(Scalar) - 1)) & std::numeric_limits<Whole<Scalar>>::max());
}

// `number`, or 0 unless `keep`, without a branch.
template <class Scalar>
KELVIN_INLINE Scalar masked(Scalar number, bool keep) {
  return std::bit_cast<Scalar>(std::bit_cast<Whole<Scalar>>(number) &
                               -static_cast<Whole<Scalar>>(keep));
}

// exp for kLowest <= x <= 0 to one unit in the last place: x = n ln 2 + r with |r| <= ln(2) / 2, a
// polynomial in r, and n goes into the exponent.
KELVIN_INLINE float exponential(float x) {
  constexpr float kRounder = 12582912;  // 1.5 * 2^23: adding it leaves no room for a fraction
  const float shifted = x * 1.44269504F + kRounder;
  const float n = shifted - kRounder;
  // ln 2 in two parts; the first has so few digits that its product is exact.
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float tail = 1.9875691500e-4F;
  tail = tail * r + 1.3981999507e-3F;
  tail = tail * r + 8.3334519073e-3F;
  tail = tail * r + 4.1665795894e-2F;
  tail = tail * r + 1.6666665459e-1F;
  tail = tail * r + 5.0000001201e-1F;
  // The low bits of `shifted` are those of n.  Unsigned, because they are shifted out of the top.
  const auto power = (std::bit_cast<uint32_t>(shifted) << 23) + (uint32_t{127} << 23);
  return ((tail * (r * r) + r) + 1) * std::bit_cast<float>(power);
}

KELVIN_INLINE double exponential(double x) { return std::exp(x); }

template <class Scalar>
struct Top {
  Scalar logit = 0;
  int64_t index = 0;
  bool is_finite = true;  // the whole row
};

template <class Scalar>
KELVIN_INLINE Top<Scalar> top_of(const Scalar* row, int64_t classes) {
  auto most = key_of(row[0]);
  auto least = most;
  for (int64_t k = 0; k < classes; ++k) {
    const auto key = key_of(row[k]);
    most = key > most ? key : most;
    least = key < least ? key : least;
  }
  constexpr auto kInfinity = std::numeric_limits<Scalar>::infinity();
  Top<Scalar> top;
  top.is_finite = most < key_of(kInfinity) && least > key_of(-kInfinity);
  constexpr auto kNone = std::numeric_limits<Whole<Scalar>>::max();
  Whole<Scalar> first = kNone;
  for (Whole<Scalar> k = 0; k < static_cast<Whole<Scalar>>(classes); ++k) {
    const auto is_smaller = -static_cast<Whole<Scalar>>(key_of(row[k]) != most);
    const auto candidate = k | (is_smaller & kNone);
    first = candidate < first ? candidate : first;
  }
  top.index = first;
  top.logit = row[first];
  return top;
}

// Sums over the classes but the top one, whose exponential is 1: beside it small ones would be
// lost.
template <class Scalar>
struct Sums {
  Scalar exponentials[kLanes] = {};
  Scalar products[kLanes] = {};  // of exponential and exponent
};

// One step of the row: writes its exponentials and adds them up.  `top` is counted from its start.
template <class Scalar>
KELVIN_INLINE void add_lanes(const Scalar* row, Scalar largest, Scalar over_temperature,
                             Whole<Scalar> top, Scalar* exponentials, Sums<Scalar>& sums) {
  for (Whole<Scalar> lane = 0; lane < static_cast<Whole<Scalar>>(kLanes); ++lane) {
    const Scalar exact = (row[lane] - largest) * over_temperature;
    const Scalar x = exact < Bits<Scalar>::kLowest ? Bits<Scalar>::kLowest : exact;
    const Scalar value = masked(exponential(x), exact >= Bits<Scalar>::kLowest);
    exponentials[lane] = value;
    const Scalar other = masked(value, lane != top);
    sums.exponentials[lane] += other;
    sums.products[lane] += other * x;
  }
}

template <class Scalar>
KELVIN_INLINE double total(const Scalar (&lanes)[kLanes]) {
  double sum = 0;
  for (const Scalar lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

// Neither infinite nor 0: a factor that makes 0 of 0 and no number of a distance that overflowed.
template <class Scalar>
KELVIN_INLINE Scalar bounded(double factor) {
  return static_cast<Scalar>(std::clamp(factor,
                                        static_cast<double>(std::numeric_limits<Scalar>::min()),
                                        static_cast<double>(std::numeric_limits<Scalar>::max())));
}

struct RowSums {
  double others = 0;    // exponentials of all classes but the top one
  double products = 0;  // of exponential and exponent
};

// Leaves the exponentials in `exponentials`, unless that is null.
template <class Scalar>
KELVIN_INLINE RowSums sums_of(const Scalar* row, int64_t classes, const Top<Scalar>& top,
                              double temperature, Scalar* exponentials) {
  const auto over_temperature = bounded<Scalar>(1 / temperature);
  Sums<Scalar> sums;
  Scalar unwanted[kLanes];
  int64_t first = 0;
  for (; first + kLanes <= classes; first += kLanes) {
    add_lanes(row + first, top.logit, over_temperature,
              static_cast<Whole<Scalar>>(top.index - first),
              exponentials != nullptr ? exponentials + first : unwanted, sums);
  }
  if (first < classes) {
    const int64_t rest = classes - first;
    Scalar logits[kLanes];
    // Far below the top, if that is not as low itself; so they are taken away again below.
    std::fill_n(logits, kLanes, std::numeric_limits<Scalar>::lowest());
    std::copy_n(row + first, rest, logits);
    Sums<Scalar> last;
    add_lanes(logits, top.logit, over_temperature, static_cast<Whole<Scalar>>(top.index - first),
              unwanted, last);
    for (int64_t lane = 0; lane < rest; ++lane) {
      sums.exponentials[lane] += last.exponentials[lane];
      sums.products[lane] += last.products[lane];
    }
    if (exponentials != nullptr) std::copy_n(unwanted, rest, exponentials + first);
  }
  return {.others = total(sums.exponentials), .products = total(sums.products)};
}

// Mean over the classes of logit - largest, in double precision: it may be large.
template <class Scalar>
KELVIN_INLINE double mean_distance(const Scalar* row, int64_t classes, Scalar largest) {
  double lanes[kLanes] = {};
  int64_t first = 0;
  for (; first + kLanes <= classes; first += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += static_cast<double>(row[first + lane]) - static_cast<double>(largest);
    }
  }
  for (int64_t lane = 0; first + lane < classes; ++lane) {
    lanes[lane] += static_cast<double>(row[first + lane]) - static_cast<double>(largest);
  }
  return total(lanes) / static_cast<double>(classes);
}

// (p - target) * weight / T, from the exponentials that are there in its place.
template <class Scalar>
KELVIN_INLINE void write_gradient(const CrossEntropyRows<Scalar>& rows, int64_t sample,
                                  const Top<Scalar>& top, double others) {
  Scalar* gradient = rows.gradient + sample * rows.classes;
  const auto label = rows.labels[sample];
  const double scale = rows.weight / rows.temperature;
  const double spread = rows.smoothing / static_cast<double>(rows.classes);
  const double own = static_cast<double>(gradient[label]) / (1 + others);
  // What the top class lacks to probability 1 is what the others have: no digits are lost.
  const double distance = label == top.index ? -others / (1 + others) : own - 1;
  const auto factor = bounded<Scalar>(scale / (1 + others));
  const auto shift = static_cast<Scalar>(scale * spread);
  for (int64_t k = 0; k < rows.classes; ++k) gradient[k] = gradient[k] * factor - shift;
  gradient[label] = static_cast<Scalar>(scale * (distance + rows.smoothing - spread));
}

template <class Scalar>
KELVIN_INLINE void run_row(const CrossEntropyRows<Scalar>& rows, int64_t sample) {
  const Scalar* row = rows.logits + sample * rows.classes;
  Scalar* gradient = rows.gradient != nullptr ? rows.gradient + sample * rows.classes : nullptr;
  auto& values = rows.values[sample];
  const auto top = top_of(row, rows.classes);
  values.prediction = top.index;
  if (!top.is_finite) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    values.loss = values.entropy = values.slope = kNan;
    if (gradient != nullptr) std::fill_n(gradient, rows.classes, static_cast<Scalar>(kNan));
    return;
  }
  const auto sums = sums_of(row, rows.classes, top, rows.temperature, gradient);
  const double log_sum = std::log1p(sums.others);
  const double mean_exponent = sums.products / (1 + sums.others);
  const double own = static_cast<double>(row[rows.labels[sample]]) - static_cast<double>(top.logit);
  double target = own;  // the targets' mean of logit - largest
  if (rows.smoothing > 0) {
    target += rows.smoothing * (mean_distance(row, rows.classes, top.logit) - own);
  }
  target /= rows.temperature;
  values.loss = log_sum - target;
  values.entropy = log_sum - mean_exponent;
  values.slope = (target - mean_exponent) / rows.temperature;
  if (gradient != nullptr) write_gradient(rows, sample, top, sums.others);
}

template <class Scalar>
KELVIN_INLINE void run_rows(const CrossEntropyRows<Scalar>& rows, int64_t begin, int64_t end) {
  for (int64_t sample = begin; sample < end; ++sample) run_row(rows, sample);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void run_rows_with_avx2(const CrossEntropyRows<float>& rows, int64_t begin,
                                                int64_t end) {
  run_rows(rows, begin, end);
}
#endif

}  // namespace

void cross_entropy_rows(const CrossEntropyRows<float>& rows, int64_t begin, int64_t end) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return run_rows_with_avx2(rows, begin, end);
#endif
  run_rows(rows, begin, end);
}

void cross_entropy_rows(const CrossEntropyRows<double>& rows, int64_t begin, int64_t end) {
  run_rows(rows, begin, end);
}

}  // namespace kelvin
