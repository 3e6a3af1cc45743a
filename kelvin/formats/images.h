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

// Labelled images as bytes, before any of them becomes a tensor.
struct RawImages {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels = {};  // [samples, channels, height, width]
  std::vector<int64_t> labels = {};  // [samples]

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  int64_t image_bytes() const { return channels * height * width; }
};

}  // namespace kelvin
