#pragma once

#include <cmath>
#include <string>

#include "kelvin/core/check.h"

namespace kelvin {

// What settings must be; `key` is the full name of one.

inline void check_above_zero(const std::string& key, double value) {
  check(std::isfinite(value) && value > 0, key, ": must be a finite number above 0, got ", value);
}

inline void check_not_negative(const std::string& key, double value) {
  check(std::isfinite(value) && value >= 0, key, ": must be a finite number, not below 0, got ",
        value);
}

// At least 0, below 1.
inline void check_share(const std::string& key, double value) {
  check(value >= 0 && value < 1, key, ": must be in [0, 1), got ", value);
}

}  // namespace kelvin
