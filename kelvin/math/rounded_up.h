#pragma once

#include <cstdint>

namespace kelvin {

// The least multiple of `unit` that is not less than `size`; neither is negative.
constexpr int64_t rounded_up(int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; }

}  // namespace kelvin
