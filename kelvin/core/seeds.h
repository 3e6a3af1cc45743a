#pragma once

#include <cstdint>
#include <string_view>

namespace kelvin {

// A bijective scrambling of 64 bits (splitmix64): neighbouring inputs give unrelated outputs.
uint64_t scramble(uint64_t bits);

// One root seed gives named, independent streams ("init", "order", "probe"), so
// that a draw added to one of them does not shift all others.
uint64_t derive_seed(uint64_t root, std::string_view stream);

}  // namespace kelvin
