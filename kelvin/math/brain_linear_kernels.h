#pragma once

#include <cstdint>

#include "kelvin/math/brain_float.h"

namespace kelvin {

// Products of a linear layer in bfloat16, summed in float32, whose weights are float32 and whose
// gradient of the weights is so too: they are rounded where they are read, and nothing is cast
// beforehand or afterwards.

constexpr int64_t kBrainLinearUnit = 32;  // inputs and outputs must be multiples of it

// Whether this processor has products of bfloat16 in the vectors that the kernels are written for.
bool has_brain_linear();

struct BrainLinearShape {
  int64_t rows = 0;
  int64_t inputs = 0;
  int64_t outputs = 0;
};

// The outputs [begin, end), multiples of 16, of x W^T + bias; `bias` may be null.
//   x [rows, inputs], weight [outputs, inputs], y [rows, outputs]
void brain_linear(const BrainLinearShape& shape, const BrainFloat* x, const float* weight,
                  const float* bias, int64_t begin, int64_t end, BrainFloat* y);

// The inputs [begin, end), multiples of 16, of `gradients` W.
//   gradients [rows, outputs], result [rows, inputs]
void brain_linear_back(const BrainLinearShape& shape, const BrainFloat* gradients,
                       const float* weight, int64_t begin, int64_t end, BrainFloat* result);

// Rows at a time for gradients of weights.
constexpr int64_t kBrainLinearRows = 512;

// Rows [begin, end), at most kBrainLinearRows, of a matrix with so many columns, pairs of them next
// to each other: [columns / 16, rows / 2, 16, 2]; of the columns [first, last), multiples of 16.
// `sums` [columns] get theirs added to, unless they are null.
struct BrainRows {
  const BrainFloat* data = nullptr;
  int64_t columns = 0;
  int64_t begin = 0;
  int64_t end = 0;
};
void brain_pairs(const BrainRows& rows, int64_t first, int64_t last, BrainFloat* pairs,
                 float* sums);

// Numbers that pairs of so many rows need.
int64_t brain_pairs_size(int64_t rows, int64_t columns);

// gradients^T x of pairs of so many rows, added to the outputs [begin, end), multiples of 16, of
// the gradient of the weights, or beginning it.
struct BrainLinearPairs {
  const BrainFloat* gradients = nullptr;
  const BrainFloat* inputs = nullptr;
  int64_t rows = 0;
};
void brain_linear_weights(const BrainLinearShape& shape, const BrainLinearPairs& pairs,
                          bool is_first, int64_t begin, int64_t end, float* gradient);

}  // namespace kelvin
