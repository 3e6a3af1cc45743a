#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "kelvin/data/hash_stream.h"

namespace kelvin {

struct Point {
  float x = 0;
  float y = 0;
};

// Channels in [0, 1].
struct Color {
  float red = 0;
  float green = 0;
  float blue = 0;
};

Color blend(Color from, Color to, float amount);

// How much of a pixel lies inside a shape whose border is `distance` pixels away (negative inside).
inline float coverage(float distance) { return std::clamp(0.5f - distance, 0.0f, 1.0f); }

// An anti-aliased RGB picture of 32x32 pixels.  Pixel (column, row) is centred on
// (column + 0.5, row + 0.5), y points down; whatever falls outside is cut off.
class Canvas {
 public:
  static constexpr int64_t kSide = 32;
  static constexpr int64_t kBytes = 3 * kSide * kSide;

  // From one colour at the canvas' border to another at the opposite one, along the unit vector
  // `direction`.
  void fill_gradient(Color from, Color to, Point direction);

  // A line with round ends.
  void draw_segment(Point from, Point to, float radius, Color color);

  void draw_ring(Point center, float ring_radius, float radius, Color color);

  void draw_disc(Point center, float radius, Color color);

  // Paints everywhere where `distance(point)`, a signed distance in pixels, is negative.
  template <class Distance>
  void draw(Distance distance, Color color) {
    draw_within(0, kSide, 0, kSide, distance, color);
  }

  // Triangular noise in (-amplitude, amplitude), independent per pixel and channel.
  void add_noise(float amplitude, HashStream& random);

  // Rounds to 3 x 32 x 32 bytes: red, green, blue plane, rows from the top.
  void write(std::span<uint8_t> pixels) const;

 private:
  template <class Distance>
  void draw_within(int64_t left, int64_t right, int64_t top, int64_t bottom, Distance distance,
                   Color color) {
    for (int64_t row = top; row < bottom; ++row) {
      for (int64_t column = left; column < right; ++column) {
        const Point point{static_cast<float>(column) + 0.5f, static_cast<float>(row) + 0.5f};
        const float amount = coverage(distance(point));
        if (amount == 0) continue;
        Color& pixel = pixels_[static_cast<size_t>(row * kSide + column)];
        pixel = blend(pixel, color, amount);
      }
    }
  }

  // The same for a shape that lies between two corners.
  template <class Distance>
  void draw_in_box(Point low, Point high, Distance distance, Color color);

  std::array<Color, kSide * kSide> pixels_{};
};

}  // namespace kelvin
