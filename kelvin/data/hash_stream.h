#pragma once

#include <cstdint>

namespace kelvin {

// Uniform numbers that are a pure function of (seed, index): sample `index` of a generated data set
// is the same whoever draws it, in whatever order.  Own arithmetic (splitmix64), because the
// distributions of <random> differ between standard libraries.
class HashStream {
 public:
  HashStream(uint64_t seed, uint64_t index) : state_(mix(mix(seed + kStep) ^ index)) {}

  uint64_t bits() { return mix(state_ += kStep); }

  // In [low, high); 24 random bits, so that the float is exact.
  float uniform(float low, float high) {
    const float unit = static_cast<float>(bits() >> 40) * 0x1p-24f;
    return low + (high - low) * unit;
  }

  // In [0, count).  The bias of the modulo is below count / 2^64.
  int64_t below(int64_t count) {
    return static_cast<int64_t>(bits() % static_cast<uint64_t>(count));
  }

  bool coin() { return (bits() >> 63) != 0; }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  uint64_t state_;
};

}  // namespace kelvin
