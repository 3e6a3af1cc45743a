#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kelvin/kernels/adaptive_softmax.h"

namespace kelvin {

// The curve of the paper.
inline AdaptiveCurve published_curve() {
  return {.coefficients = {-0.037, 0.481, -2.3, 4.917, -1.791}, .floor = 1, .threshold = 0.5};
}

// All sets that this processor has.
inline std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets;
  for (const auto set : {InstructionSet::generic, InstructionSet::avx2, InstructionSet::avx512}) {
    if (set <= widest_instruction_set()) sets.push_back(set);
  }
  return sets;
}

inline std::string name_of(InstructionSet set) {
  return std::vector<std::string>{"generic", "avx2", "avx512"}.at(static_cast<size_t>(set));
}

// What the kernel is to compute, in double precision and without streaming.
struct ExactRow {
  std::vector<double> result;
  double entropy = 0;
  double beta = 1;
  double slope = 0;
  double spread = 0;
  double top_weight = 0;
};

inline ExactRow exact_row(const std::vector<double>& logits, double inverse_temperature = 1,
                          bool has_slope = true) {
  constexpr double kMasked = -std::numeric_limits<double>::infinity();
  ExactRow row;
  double top = kMasked;
  double low = -kMasked;
  for (const double x : logits) {
    top = std::max(top, x);
    if (x != kMasked) low = std::min(low, x);
  }
  row.result.assign(logits.size(), 0);
  if (top == kMasked) return row;
  row.spread = top - low;
  double sum = 0;
  for (const double x : logits) sum += std::exp((x - top) * inverse_temperature);
  for (const double x : logits) {
    const double share = std::exp((x - top) * inverse_temperature) / sum;
    if (share > 0) row.entropy -= share * std::log(share);
  }
  const double h = row.entropy;
  const double value = (((-0.037 * h + 0.481) * h - 2.3) * h + 4.917) * h - 1.791;
  if (h > 0.5 && value > 1) {
    row.beta = value;
    if (has_slope) row.slope = ((-0.148 * h + 1.443) * h - 4.6) * h + 4.917;
  }
  double total = 0;
  for (const double x : logits) total += std::exp(row.beta * (x - top) * inverse_temperature);
  for (size_t i = 0; i < logits.size(); ++i) {
    row.result[i] = std::exp(row.beta * (logits[i] - top) * inverse_temperature) / total;
  }
  row.top_weight = 1 / total;
  return row;
}

inline std::vector<float> random_floats(int64_t count, double deviation, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, static_cast<float>(deviation));
  std::vector<float> numbers(static_cast<size_t>(count));
  for (auto& number : numbers) number = normal(generator);
  return numbers;
}

}  // namespace kelvin
