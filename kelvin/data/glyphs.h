#pragma once

#include <cstdint>
#include <span>

namespace kelvin {

struct GlyphsOptions {
  int64_t classes = 100;  // 10: one of ten parts; 100: an ordered pair of them
};

// Draws image `index` of the stream `seed` into `pixels` (3 x 32 x 32 bytes, channels first) and
// returns its label, index % classes.
//
// A glyph is made of strokes.  With 100 classes, class 10 * i + j shows part i above and to the
// left of part j.  Place, size, slant (25 degrees either way), stroke width, colours, polarity,
// background, clutter and noise vary, so that no single pixel tells the class.
int64_t draw_glyph(const GlyphsOptions& options, uint64_t seed, uint64_t index,
                   std::span<uint8_t> pixels);

}  // namespace kelvin
