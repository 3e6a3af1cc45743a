#include "kelvin/data/textures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "kelvin/core/check.h"
#include "kelvin/data/canvas.h"

namespace kelvin {

namespace {

// Keeps this generator's streams apart from those of other generators with the same seed.
constexpr uint64_t kTextureGenerator = 0x7465787475726573;  // "textures"

// Where a texture lies and how large it is.
struct Frame {
  Point origin;
  float cosine = 1;
  float sine = 0;
  float period = 8;        // pixels
  float thickness = 0.3f;  // fraction of a period that is foreground
  float shape = 0;         // in [0, 1): whatever else a pattern may vary
  uint64_t seed = 0;       // of the patterns that are random themselves

  Point local(Point point) const {
    const float x = point.x - origin.x;
    const float y = point.y - origin.y;
    return {cosine * x + sine * y, cosine * y - sine * x};
  }
};

// Position within the period, in [-period / 2, period / 2).
float fold(float x, float period) { return x - period * std::floor(x / period + 0.5f); }

float length(Point point) { return std::sqrt(point.x * point.x + point.y * point.y); }

// Each of the following is the signed distance, in pixels, to the foreground of a pattern.

float stripes(Point point, const Frame& frame) {
  return std::abs(fold(point.x, frame.period)) - 0.5f * frame.thickness * frame.period;
}

float checks(Point point, const Frame& frame) {
  const float quarter = frame.period / 4;
  const float x = std::abs(fold(point.x, frame.period)) - quarter;
  const float y = std::abs(fold(point.y, frame.period)) - quarter;
  const float border = std::min(std::abs(x), std::abs(y));
  return (x < 0) == (y < 0) ? border : -border;
}

float dots(Point point, const Frame& frame) {
  const float radius = frame.period * (0.2f + 0.3f * frame.thickness);
  return length({fold(point.x, frame.period), fold(point.y, frame.period)}) - radius;
}

float rings(Point point, const Frame& frame) { return stripes({length(point), 0}, frame); }

float waves(Point point, const Frame& frame) {
  const double turns = point.y / (1.5f * frame.period);
  const auto bend = static_cast<float>(std::sin(2 * std::numbers::pi * turns));
  return stripes({point.x + (0.3f + 0.2f * frame.shape) * frame.period * bend, 0}, frame);
}

float zigzag(Point point, const Frame& frame) {
  const float bend = std::abs(fold(point.y, 1.6f * frame.period));
  return stripes({point.x + (1.0f + 0.4f * frame.shape) * bend, 0}, frame);
}

float bricks(Point point, const Frame& frame) {
  const float height = 0.75f * frame.period;
  const float width = 1.5f * frame.period;
  const float row = std::floor(point.y / height);
  const float shift = fold(row, 2) == 0 ? 0.0f : width / 2;
  const float across = std::abs(fold(point.x + shift, width));
  const float along = std::abs(fold(point.y, height));
  return std::min(across, along) - 0.3f * frame.thickness * frame.period;
}

float spokes(Point point, const Frame& frame) {
  // The lines through the centre change sides one after the other.
  const int64_t lines = 3 + static_cast<int64_t>(3 * frame.shape);
  float distance = 1e6f;
  bool inside = false;
  for (int64_t i = 0; i < lines; ++i) {
    const double angle = std::numbers::pi * static_cast<double>(i) / static_cast<double>(lines);
    const float side = static_cast<float>(std::cos(angle)) * point.x +
                       static_cast<float>(std::sin(angle)) * point.y;
    inside ^= side > 0;
    distance = std::min(distance, std::abs(side));
  }
  return inside ? -distance : distance;
}

float crosses(Point point, const Frame& frame) {
  const float x = std::abs(fold(point.x, frame.period));
  const float y = std::abs(fold(point.y, frame.period));
  const float across = std::max(x, y) - 0.4f * frame.period;
  const float along = std::min(x, y) - 0.25f * frame.thickness * frame.period;
  return std::max(across, along);
}

float lattice_value(float column, float row, uint64_t seed) {
  const auto key =
      static_cast<uint64_t>(static_cast<int64_t>(column) * 4096 + static_cast<int64_t>(row));
  return HashStream(seed, key).uniform(-1, 1);
}

float smooth_noise(Point point, float period, uint64_t seed) {
  const float column = std::floor(point.x / period);
  const float row = std::floor(point.y / period);
  const float x = point.x / period - column;
  const float y = point.y / period - row;
  const float ease_x = x * x * (3 - 2 * x);
  const float ease_y = y * y * (3 - 2 * y);
  const float top_left = lattice_value(column, row, seed);
  const float top_right = lattice_value(column + 1, row, seed);
  const float bottom_left = lattice_value(column, row + 1, seed);
  const float bottom_right = lattice_value(column + 1, row + 1, seed);
  const float top = top_left + (top_right - top_left) * ease_x;
  const float bottom = bottom_left + (bottom_right - bottom_left) * ease_x;
  return top + (bottom - top) * ease_y;
}

float blobs(Point point, const Frame& frame) {
  const float value = smooth_noise(point, frame.period, frame.seed) +
                      0.5f * smooth_noise(point, frame.period / 2, frame.seed + 1);
  // The slope of the noise is about 2 per period: this makes its level a distance.
  return 0.5f * frame.period * (0.2f - value);
}

using Pattern = float (*)(Point, const Frame&);

constexpr std::array<Pattern, kTextureClasses> kPatterns = {
    stripes, checks, dots, rings, waves, zigzag, bricks, spokes, crosses, blobs};

Frame draw_frame(HashStream& random) {
  constexpr auto kFar = static_cast<float>(Canvas::kSide);
  Frame frame;
  frame.origin.x = random.uniform(0.2f * kFar, 0.8f * kFar);
  frame.origin.y = random.uniform(0.2f * kFar, 0.8f * kFar);
  const double angle = random.uniform(0, 2) * std::numbers::pi;
  frame.cosine = static_cast<float>(std::cos(angle));
  frame.sine = static_cast<float>(std::sin(angle));
  frame.period = random.uniform(6, 12);
  frame.thickness = random.uniform(0.25f, 0.5f);
  frame.shape = random.uniform(0, 1);
  frame.seed = random.bits();
  return frame;
}

}  // namespace

int64_t draw_texture(uint64_t seed, uint64_t index, std::span<uint8_t> pixels) {
  check(pixels.size() == static_cast<size_t>(Canvas::kBytes), "draw_texture: pixels must have ",
        Canvas::kBytes, " bytes, got ", pixels.size());

  const auto label = static_cast<int64_t>(index % static_cast<uint64_t>(kTextureClasses));
  HashStream random(seed ^ kTextureGenerator, index);
  const Palette palette = draw_palette(random);
  // A texture covers more than a glyph does: less contrast gives its image the same standard
  // deviation.
  const Color foreground =
      blend(palette.background, palette.foreground, random.uniform(0.5f, 0.85f));
  const Frame frame = draw_frame(random);
  const Pattern pattern = kPatterns[static_cast<size_t>(label)];

  Canvas canvas;
  canvas.fill_gradient(palette.background, palette.background_end, palette.gradient_direction);
  canvas.draw([&](Point point) { return pattern(frame.local(point), frame); }, foreground);
  canvas.add_noise(palette.noise_amplitude, random);
  canvas.write(pixels);
  return label;
}

}  // namespace kelvin
