#pragma once

#include <cstdint>

namespace kelvin {

// bfloat16: the upper half of a float.
struct BrainFloat {
  uint16_t bits = 0;
};

}  // namespace kelvin
