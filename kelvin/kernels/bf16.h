#pragma once

#include <bit>
#include <cstdint>

namespace kelvin {

// bfloat16: the upper half of a float.
struct Bf16 {
  uint16_t bits = 0;
};

// What kernels read and write as float32, whatever it is stored as.  Inlined, so that it is
// compiled for the instructions of the kernel.

[[gnu::always_inline]] inline float number(float value) { return value; }
[[gnu::always_inline]] inline float number(Bf16 value) {
  return std::bit_cast<float>(uint32_t{value.bits} << 16);
}

[[gnu::always_inline]] inline void put(float value, float& to) { to = value; }
// The nearest one, ties to even; NaN stays NaN.
[[gnu::always_inline]] inline void put(float value, Bf16& to) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t nearest = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  constexpr uint32_t kNan = 0x7fc0;
  to.bits = static_cast<uint16_t>(value == value ? nearest : kNan);
}

}  // namespace kelvin
