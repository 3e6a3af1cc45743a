#pragma once

#include <cstdint>

#include "kelvin/kernels/bf16.h"

namespace kelvin {

// Whether this processor has the vectors that the kernels are written for.
bool has_gelu_kernels();

// x times the normal distribution's probability below x; of float or Bf16.
template <class Number>
void gelu_numbers(const Number* x, int64_t count, Number* y);

// Its derivative times `gradient`.
template <class Number>
void gelu_gradient(const Number* x, const Number* gradient, int64_t count, Number* result);

}  // namespace kelvin
