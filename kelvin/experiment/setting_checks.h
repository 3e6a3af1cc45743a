#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "kelvin/core/check.h"

namespace kelvin {

// What settings must be; `key` is the full name of one.

// What training computes with is float32, whose numbers are from 1e-38 to 3e38.
inline void check_float(const std::string& key, double value) {
  constexpr double kLeast = 1e-30;
  constexpr double kMost = 1e30;
  check(value == 0 || (std::abs(value) >= kLeast && std::abs(value) <= kMost), key,
        ": must be from ", kLeast, " to ", kMost, ", which float32 can hold, got ", value);
}

inline void check_above_zero(const std::string& key, double value) {
  check(std::isfinite(value) && value > 0, key, ": must be a finite number above 0, got ", value);
  check_float(key, value);
}

inline void check_not_negative(const std::string& key, double value) {
  check(std::isfinite(value) && value >= 0, key, ": must be a finite number, not below 0, got ",
        value);
  check_float(key, value);
}

// Of the softmax; gradients are of the order of 1/T, and their squares must be numbers too.
inline void check_temperature_setting(const std::string& key, double value) {
  constexpr double kLeast = 1e-12;
  constexpr double kMost = 1e12;
  check(std::isfinite(value) && value > 0, key, ": must be a finite number above 0, got ", value);
  check(value >= kLeast && value <= kMost, key, ": must be from ", kLeast, " to ", kMost, ", got ",
        value);
}

// Counts of samples, layers or steps; beyond it sums of them could overflow.
inline void check_count(const std::string& key, int64_t value, int64_t least) {
  constexpr int64_t kMost = 100'000'000;
  check(value >= least, key, ": must be at least ", least, ", got ", value);
  check(value <= kMost, key, ": must be at most ", kMost, ", got ", value);
}

// At least 0, below 1.
inline void check_share(const std::string& key, double value) {
  check(value >= 0 && value < 1, key, ": must be in [0, 1), got ", value);
}

}  // namespace kelvin
