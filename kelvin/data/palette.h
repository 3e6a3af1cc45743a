#pragma once

#include "kelvin/data/canvas.h"
#include "kelvin/data/hash_stream.h"

namespace kelvin {

// The colours, gradient and noise of one generated image.  Glyphs and textures draw them from this
// one distribution, so that neither brightness nor contrast tells the two data sets apart.
struct Palette {
  Color foreground;
  Color background;
  Color background_end;      // where the background's gradient leads
  Point gradient_direction;  // unit vector
  float noise_amplitude = 0;
};

// One colour is dark, the other light; which is the foreground is a coin toss.
Palette draw_palette(HashStream& random);

}  // namespace kelvin
