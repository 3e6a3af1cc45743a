#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace kelvin {

// Uniform numbers that are a pure function of (seed, index): sample `index` of a generated data set
// is the same whoever draws it, in whatever order.  Own arithmetic (splitmix64), because the
// distributions of <random> differ between standard libraries.
class HashStream {
 public:
  HashStream(uint64_t seed, uint64_t index) : state_(mix(mix(seed + kStep) ^ index)) {}

  uint64_t bits() { return mix(state_ += kStep); }

  // In [low, high); 24 random bits, so that the float is exact.
  float uniform(float low, float high) {
    const float unit = static_cast<float>(bits() >> 40) * 0x1p-24f;
    return low + (high - low) * unit;
  }

  // In [0, count).  The bias of the modulo is below count / 2^64.
  int64_t below(int64_t count) {
    return static_cast<int64_t>(bits() % static_cast<uint64_t>(count));
  }

  bool coin() { return (bits() >> 63) != 0; }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  uint64_t state_;
};

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
