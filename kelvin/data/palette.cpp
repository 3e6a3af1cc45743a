#include "kelvin/data/palette.h"

#include <cmath>
#include <numbers>

namespace kelvin {

namespace {

Color tinted(float brightness, HashStream& random) {
  Color color;
  color.red = brightness + random.uniform(-0.2f, 0.2f);
  color.green = brightness + random.uniform(-0.15f, 0.15f);
  color.blue = brightness + random.uniform(-0.25f, 0.25f);
  return color;
}

}  // namespace

Palette draw_palette(HashStream& random) {
  const float middle = random.uniform(0.38f, 0.62f);
  const float half_contrast = random.uniform(0.18f, 0.36f);
  const float sign = random.coin() ? 1.0f : -1.0f;

  Palette palette;
  palette.foreground = tinted(middle + sign * half_contrast, random);
  palette.background = tinted(middle - sign * half_contrast, random);
  palette.background_end =
      blend(palette.background, tinted(middle - sign * half_contrast, random), 0.7f);
  const double angle = random.uniform(0, 2) * std::numbers::pi;
  palette.gradient_direction = {static_cast<float>(std::cos(angle)),
                                static_cast<float>(std::sin(angle))};
  palette.noise_amplitude = random.uniform(0.03f, 0.16f);
  return palette;
}

}  // namespace kelvin
