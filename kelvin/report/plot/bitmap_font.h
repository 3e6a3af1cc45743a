#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kelvin/formats/images.h"

namespace kelvin {

// A small font for labels inside of pictures: capitals of seven pixels, two more below the line,
// letters as wide as they need.  Printable ASCII; any other character is drawn as an empty box.

constexpr int64_t kTextHeight = 9;

struct TextColour {
  uint8_t red = 0;
  uint8_t green = 0;
  uint8_t blue = 0;
};

// In pixels; `text` is UTF-8.
int64_t pixel_width(std::string_view text);

// The text itself if it takes up to `width` pixels, else as many of its first characters as there
// is room for before "...".
std::string shortened_to(std::string_view text, int64_t width);

// Draws with the upper left corner at `left`, `top`; what lies outside of the picture is left out.
void draw_text(Picture& picture, int64_t left, int64_t top, std::string_view text,
               const TextColour& colour);

}  // namespace kelvin
