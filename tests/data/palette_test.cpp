#include "kelvin/data/palette.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kelvin {
namespace {

float brightness(Color color) { return (color.red + color.green + color.blue) / 3; }

TEST(Palette, ForegroundIsAsOftenTheLighterOne) {
  int64_t lighter = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    HashStream random(0, i);
    const Palette palette = draw_palette(random);
    lighter += brightness(palette.foreground) > brightness(palette.background) ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(lighter), 1000, 100);
}

TEST(Palette, AlwaysHasContrast) {
  for (uint64_t i = 0; i < 2000; ++i) {
    HashStream random(0, i);
    const Palette palette = draw_palette(random);
    EXPECT_GT(std::abs(brightness(palette.foreground) - brightness(palette.background)), 0.02f);
  }
}

TEST(Palette, GradientDirectionHasLengthOne) {
  HashStream random(3, 4);
  const Point direction = draw_palette(random).gradient_direction;
  EXPECT_NEAR(std::hypot(direction.x, direction.y), 1, 1e-6);
}

}  // namespace
}  // namespace kelvin
