#pragma once

#include <cstdint>

#include "kelvin/kernels/bf16.h"

namespace kelvin {

// Products of a linear layer in bfloat16, summed in float32, whose weights are float32 and whose
// gradient of the weights is so too: they are rounded where they are read, and nothing is cast
// beforehand or afterwards.

constexpr int64_t kBf16LinearUnit = 32;  // inputs and outputs must be multiples of it

// Whether this processor has products of bfloat16 in the vectors that the kernels are written for.
bool has_bf16_linear();

struct Bf16LinearShape {
  int64_t rows = 0;
  int64_t inputs = 0;
  int64_t outputs = 0;
};

// The outputs [begin, end), multiples of 16, of x W^T + bias; `bias` may be null.
//   x [rows, inputs], weight [outputs, inputs], y [rows, outputs]
void bf16_linear(const Bf16LinearShape& shape, const Bf16* x, const float* weight,
                 const float* bias, int64_t begin, int64_t end, Bf16* y);

// The inputs [begin, end), multiples of 16, of `gradients` W.
//   gradients [rows, outputs], result [rows, inputs]
void bf16_linear_back(const Bf16LinearShape& shape, const Bf16* gradients, const float* weight,
                      int64_t begin, int64_t end, Bf16* result);

// Rows at a time for gradients of weights.
constexpr int64_t kBf16LinearRows = 512;

// Rows [begin, end), at most kBf16LinearRows, of a matrix with so many columns, pairs of them next
// to each other: [columns / 16, rows / 2, 16, 2]; of the columns [first, last), multiples of 16.
// `sums` [columns] get theirs added to, unless they are null.
struct Bf16Rows {
  const Bf16* data = nullptr;
  int64_t columns = 0;
  int64_t begin = 0;
  int64_t end = 0;
};
void bf16_pairs(const Bf16Rows& rows, int64_t first, int64_t last, Bf16* pairs, float* sums);

// Numbers that pairs of so many rows need.
int64_t bf16_pairs_size(int64_t rows, int64_t columns);

// gradients^T x of pairs of so many rows, added to the outputs [begin, end), multiples of 16, of
// the gradient of the weights, or beginning it.
struct Bf16LinearPairs {
  const Bf16* gradients = nullptr;
  const Bf16* inputs = nullptr;
  int64_t rows = 0;
};
void bf16_linear_weights(const Bf16LinearShape& shape, const Bf16LinearPairs& pairs, bool is_first,
                         int64_t begin, int64_t end, float* gradient);

}  // namespace kelvin
