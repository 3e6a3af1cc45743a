#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "kelvin/kernels/row_vectors.h"

namespace kelvin {

// The factor of the logits over the entropy H of their softmax, in nats: 1 up to the threshold, and
// beyond it a polynomial, but no less than the floor.
struct AdaptiveCurve {
  static constexpr int kTerms = 5;
  std::array<double, kTerms> coefficients = {};  // of the highest power first
  double floor = 1;
  double threshold = 0;
  // Beyond this entropy a line takes the polynomial's place.
  double bend = std::numeric_limits<double>::infinity();
  double at_bend = 0;
  double slope_beyond = 0;
};

// One number for each row, or null if it is not wanted.
struct AdaptiveRowNumbers {
  float* entropy = nullptr;     // of softmax(logits / T), in nats
  float* beta = nullptr;        // what the logits are multiplied by
  float* spread = nullptr;      // largest less smallest logit that is not masked
  float* top_weight = nullptr;  // largest probability of the result
  // What else the gradient needs: the largest logit m, the sum of exp((x - m) / T), the mean of
  // x - m by the softmax at T, and the derivative of beta in the entropy.
  float* largest = nullptr;
  float* sum = nullptr;
  float* mean = nullptr;
  float* slope = nullptr;
};

template <class Number>
struct AdaptiveSoftmaxRows {
  const Number* logits = nullptr;  // [rows, columns], without gaps
  int64_t rows = 0;
  int64_t columns = 0;
  double inverse_temperature = 1;  // in [1e-30, 1e30]
  AdaptiveCurve curve = {};
  Number* result = nullptr;  // [rows, columns]
  AdaptiveRowNumbers numbers = {};
};

// softmax(beta(H(softmax(logits / T))) * logits / T) of the rows [begin, end), of float or Bf16.
// Logits of -infinity get exactly 0, rows of nothing else are all zeros; a NaN or +infinity makes
// the whole row NaNs.  Bits do not depend on the rows beside one, but on the instruction set.
template <class Number>
void adaptive_softmax_rows(const AdaptiveSoftmaxRows<Number>& rows, int64_t begin, int64_t end,
                           InstructionSet set = widest_instruction_set());

template <class Number>
struct AdaptiveSoftmaxGradient {
  const Number* logits = nullptr;    // [rows, columns]
  const Number* gradient = nullptr;  // of the result
  int64_t rows = 0;
  int64_t columns = 0;
  double inverse_temperature = 1;
  // What adaptive_softmax_rows said of the rows; a null slope stands for zeros.
  const float* beta = nullptr;
  const float* top_weight = nullptr;
  const float* largest = nullptr;
  const float* sum = nullptr;
  const float* mean = nullptr;
  const float* slope = nullptr;
  Number* result = nullptr;  // the gradient of the logits
};

template <class Number>
void adaptive_softmax_gradient(const AdaptiveSoftmaxGradient<Number>& rows, int64_t begin,
                               int64_t end, InstructionSet set = widest_instruction_set());

}  // namespace kelvin
