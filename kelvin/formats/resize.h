#pragma once

#include <cstdint>
#include <span>

#include "kelvin/formats/picture.h"

namespace kelvin {

// A part of a picture, in pixels from its upper left corner; edges may lie inside of pixels.
struct Box {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
};

// Samples `box` of `picture` at width x height points with a triangle filter that widens when it
// shrinks: what Pillow calls BILINEAR, to the bit.  Writes [height, width, 3].
void resize(const Picture& picture, const Box& box, int64_t width, int64_t height,
            std::span<uint8_t> rgb);

}  // namespace kelvin
