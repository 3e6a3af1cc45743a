#pragma once

#include <cstdint>
#include <span>

#include "kelvin/formats/images.h"

namespace kelvin {

// A part of a picture, in pixels from its upper left corner; edges may lie inside of pixels.
struct Box {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
};

// Samples `box` of `picture` at width x height points with a triangle filter that widens when it
// shrinks: what Pillow up to 12 calls BILINEAR, to the bit; 13 resizes the columns first where
// that is faster, so that bytes may differ by 1.  Writes [height, width, 3].
void resize(const Picture& picture, const Box& box, int64_t width, int64_t height,
            std::span<uint8_t> rgb);

// Some of the pixels of a picture, counted from its upper left corner.
struct Window {
  int64_t left = 0;
  int64_t top = 0;
  int64_t width = 0;
  int64_t height = 0;
};

// The whole picture resized to `full`, of which only the window is computed: the same bytes as a
// resize and a crop.  Writes [window.height, window.width, 3].
void resize_window(const Picture& picture, const PictureSize& full, const Window& window,
                   std::span<uint8_t> rgb);

}  // namespace kelvin
