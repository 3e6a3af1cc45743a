#include "kelvin/ops/optimizer_step.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "kelvin/ops/parallel_for.h"

// Plain loops that the compiler turns into vectors, inlined into one function per instruction set.

#define KELVIN_INLINE [[gnu::always_inline]] inline

namespace kelvin {
namespace {

constexpr int64_t kGrain = 16384;  // so many numbers are worth a thread
constexpr int64_t kBlock = 4096;   // numbers whose squares are summed by one thread
constexpr int64_t kLanes = 16;     // sums in a block, so that vectors of any width give the same

bool has_avx2() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
#else
  return false;
#endif
}

#if defined(__x86_64__)
#define KELVIN_AVX2 [[gnu::target("avx2")]]
#else
#define KELVIN_AVX2
#endif

// work(tensor, begin, end) for ranges that make up all tensors.
template <class Tensor, class Work>
void for_all_ranges(const std::vector<Tensor>& tensors, const Work& work) {
  int64_t total = 0;
  for (const auto& tensor : tensors) total += tensor.length;
  parallel_for(0, total, kGrain, [&](int64_t begin, int64_t end) {
    int64_t before = 0;  // numbers of the tensors before this one
    for (const auto& tensor : tensors) {
      const auto first = std::max<int64_t>(begin - before, 0);
      const auto last = std::min(end - before, tensor.length);
      if (first < last) work(tensor, first, last);
      before += tensor.length;
    }
  });
}

enum class Momentum { none, classic, nesterov };

template <bool kDecays, Momentum kMomentum, class Scalar>
KELVIN_INLINE void sgd_loop(const SteppedTensor<Scalar>& tensor, const SgdRule& rule, int64_t begin,
                            int64_t end, Scalar* __restrict moved) {
  const Scalar* __restrict parameter = tensor.parameter;
  const Scalar* __restrict gradient = tensor.gradient;
  Scalar* __restrict mean = tensor.mean;
  const auto scale = static_cast<Scalar>(rule.gradient_scale);
  const auto shrink = static_cast<Scalar>(tensor.shrink);
  const auto decay = static_cast<Scalar>(tensor.decay);
  const auto momentum = static_cast<Scalar>(rule.momentum);
  const auto learning_rate = static_cast<Scalar>(tensor.learning_rate);
  for (int64_t i = begin; i < end; ++i) {
    const Scalar weight = parameter[i] * shrink;
    Scalar direction = gradient[i] * scale;
    // Not by a decay of 0: infinite weights would become NaN.
    if constexpr (kDecays) direction += decay * weight;
    if constexpr (kMomentum != Momentum::none) {
      const Scalar sum = momentum * mean[i] + direction;
      mean[i] = sum;
      direction = kMomentum == Momentum::nesterov ? direction + momentum * sum : sum;
    }
    moved[i - begin] = weight - learning_rate * direction;
  }
}

template <bool kDecays, class Scalar>
KELVIN_INLINE void move_range(const SteppedTensor<Scalar>& tensor, const SgdRule& rule,
                              int64_t begin, int64_t end, Scalar* moved) {
  if (tensor.mean == nullptr) {
    sgd_loop<kDecays, Momentum::none>(tensor, rule, begin, end, moved);
  } else if (rule.nesterov) {
    sgd_loop<kDecays, Momentum::nesterov>(tensor, rule, begin, end, moved);
  } else {
    sgd_loop<kDecays, Momentum::classic>(tensor, rule, begin, end, moved);
  }
}

template <bool kDecays, class Scalar>
KELVIN_INLINE void move_range(const SteppedTensor<Scalar>& tensor, const AdamRule& rule,
                              int64_t begin, int64_t end, Scalar* __restrict moved) {
  const Scalar* __restrict parameter = tensor.parameter;
  const Scalar* __restrict gradient = tensor.gradient;
  Scalar* __restrict mean = tensor.mean;
  Scalar* __restrict mean_square = tensor.mean_square;
  const auto steps = static_cast<double>(tensor.steps);
  const auto scale = static_cast<Scalar>(rule.gradient_scale);
  const auto shrink = static_cast<Scalar>(tensor.shrink);
  const auto decay = static_cast<Scalar>(tensor.decay);
  const auto keep1 = static_cast<Scalar>(rule.beta1);
  const auto take1 = static_cast<Scalar>(1 - rule.beta1);
  const auto keep2 = static_cast<Scalar>(rule.beta2);
  const auto take2 = static_cast<Scalar>(1 - rule.beta2);
  const auto epsilon = static_cast<Scalar>(rule.epsilon);
  const auto step_size =
      static_cast<Scalar>(tensor.learning_rate / (1 - std::pow(rule.beta1, steps)));
  const auto bias = static_cast<Scalar>(std::sqrt(1 - std::pow(rule.beta2, steps)));
  for (int64_t i = begin; i < end; ++i) {
    const Scalar weight = parameter[i] * shrink;
    Scalar slope = gradient[i] * scale;
    if constexpr (kDecays) slope += decay * weight;
    const Scalar first = keep1 * mean[i] + take1 * slope;
    const Scalar second = keep2 * mean_square[i] + take2 * slope * slope;
    mean[i] = first;
    mean_square[i] = second;
    moved[i - begin] = weight - step_size * first / (std::sqrt(second) / bias + epsilon);
  }
}

// Writes past the caches: nobody reads these numbers before many others, and where other cores have
// them in their caches, waiting for each of them to be given up took three times as long.
template <class Scalar>
KELVIN_INLINE void stream(const Scalar* from, int64_t count, Scalar* to) {
#if defined(__x86_64__)
  constexpr int64_t kUnit = sizeof(__m128i) / sizeof(Scalar);
  for (; count > 0 && reinterpret_cast<uintptr_t>(to) % sizeof(__m128i) != 0; --count) {
    *to++ = *from++;
  }
  for (; count >= kUnit; count -= kUnit, from += kUnit, to += kUnit) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
#endif
  std::copy_n(from, count, to);
}

// What was streamed is seen by others from here on.
KELVIN_INLINE void finish_streams() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

template <class Scalar, class Rule>
KELVIN_INLINE void step_range(const SteppedTensor<Scalar>& tensor, const Rule& rule, int64_t begin,
                              int64_t end) {
  constexpr int64_t kMoved = 512;
  Scalar moved[kMoved];
  for (auto first = begin; first < end; first += kMoved) {
    const auto last = std::min(first + kMoved, end);
    if (tensor.decay != 0) {
      move_range<true>(tensor, rule, first, last, moved);
    } else {
      move_range<false>(tensor, rule, first, last, moved);
    }
    stream(moved, last - first, tensor.parameter + first);
  }
  finish_streams();
}

template <class Scalar, class Rule>
KELVIN_AVX2 void step_range_with_avx2(const SteppedTensor<Scalar>& tensor, const Rule& rule,
                                      int64_t begin, int64_t end) {
  step_range(tensor, rule, begin, end);
}

template <class Scalar, class Rule>
void step_all(const SteppedTensors<Scalar>& tensors, const Rule& rule) {
  for_all_ranges(tensors, [&](const auto& tensor, int64_t begin, int64_t end) {
    if (has_avx2()) return step_range_with_avx2(tensor, rule, begin, end);
    step_range(tensor, rule, begin, end);
  });
}

template <class Scalar>
KELVIN_INLINE void average_range(const AveragedTensor<Scalar>& tensor, double fraction,
                                 int64_t begin, int64_t end) {
  Scalar* __restrict average = tensor.average;
  const Scalar* __restrict newest = tensor.newest;
  const auto step = static_cast<Scalar>(fraction);
  const auto rest = 1 - step;
  if (step < Scalar{0.5}) {
    for (int64_t i = begin; i < end; ++i) average[i] += step * (newest[i] - average[i]);
  } else {  // so that a fraction of 1 is the newest itself
    for (int64_t i = begin; i < end; ++i) average[i] = newest[i] - (newest[i] - average[i]) * rest;
  }
}

template <class Scalar>
KELVIN_AVX2 void average_range_with_avx2(const AveragedTensor<Scalar>& tensor, double fraction,
                                         int64_t begin, int64_t end) {
  average_range(tensor, fraction, begin, end);
}

template <class Scalar>
void average_all(const std::vector<AveragedTensor<Scalar>>& tensors, double fraction) {
  for_all_ranges(tensors, [&](const auto& tensor, int64_t begin, int64_t end) {
    if (has_avx2()) return average_range_with_avx2(tensor, fraction, begin, end);
    average_range(tensor, fraction, begin, end);
  });
}

template <class Scalar>
struct Block {
  const Scalar* values = nullptr;
  int64_t length = 0;
};

template <class Scalar>
KELVIN_INLINE double squares_of(const Block<Scalar>& block) {
  double lanes[kLanes] = {};
  int64_t first = 0;
  for (; first + kLanes <= block.length; first += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(block.values[first + lane]);
      lanes[lane] += value * value;
    }
  }
  for (int64_t lane = 0; first + lane < block.length; ++lane) {
    const auto value = static_cast<double>(block.values[first + lane]);
    lanes[lane] += value * value;
  }
  return std::accumulate(lanes, lanes + kLanes, 0.0);
}

template <class Scalar>
KELVIN_AVX2 double squares_with_avx2(const Block<Scalar>& block) {
  return squares_of(block);
}

template <class Scalar>
double sum_squares(const SteppedTensors<Scalar>& tensors) {
  std::vector<Block<Scalar>> blocks;
  for (const auto& tensor : tensors) {
    for (int64_t first = 0; first < tensor.length; first += kBlock) {
      blocks.push_back({tensor.gradient + first, std::min(kBlock, tensor.length - first)});
    }
  }
  std::vector<double> sums(blocks.size());
  const auto count = static_cast<int64_t>(blocks.size());
  parallel_for(0, count, kGrain / kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      sums[i] = has_avx2() ? squares_with_avx2(blocks[i]) : squares_of(blocks[i]);
    }
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

void sgd_step(const SteppedTensors<float>& tensors, const SgdRule& rule) {
  step_all(tensors, rule);
}

void sgd_step(const SteppedTensors<double>& tensors, const SgdRule& rule) {
  step_all(tensors, rule);
}

void adam_step(const SteppedTensors<float>& tensors, const AdamRule& rule) {
  step_all(tensors, rule);
}

void adam_step(const SteppedTensors<double>& tensors, const AdamRule& rule) {
  step_all(tensors, rule);
}

double squared_gradients(const SteppedTensors<float>& tensors) { return sum_squares(tensors); }

double squared_gradients(const SteppedTensors<double>& tensors) { return sum_squares(tensors); }

void average_step(const std::vector<AveragedTensor<float>>& tensors, double fraction) {
  average_all(tensors, fraction);
}

void average_step(const std::vector<AveragedTensor<double>>& tensors, double fraction) {
  average_all(tensors, fraction);
}

}  // namespace kelvin
