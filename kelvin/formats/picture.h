#pragma once

#include <cstdint>
#include <vector>

namespace kelvin {

// An image of any size as decoded: rows of RGB triples, eight bits each.
struct Picture {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> rgb = {};  // [height, width, 3]
};

struct PictureSize {
  int64_t width = 0;
  int64_t height = 0;
};

// Decoders refuse larger ones: no photograph has as many, and a damaged header may claim any
// number.
constexpr int64_t kMostPixels = int64_t{1} << 27;

}  // namespace kelvin
