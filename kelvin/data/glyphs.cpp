#include "kelvin/data/glyphs.h"

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/data/canvas.h"

namespace kelvin {

namespace {

constexpr int64_t kParts = 10;

// Keeps this generator's streams apart from those of other generators with the same seed.
constexpr uint64_t kGlyphGenerator = 0x676c79706873;  // "glyphs"

// What one part of a glyph consists of, in the square [-1, 1]^2, y down.
struct Part {
  std::vector<std::array<Point, 2>> segments = {};
  float ring_radius = 0;  // 0: no ring
  float disc_radius = 0;  // 0: no disc
};

// Chosen so that turning one by 25 degrees does not make it another.
const std::array<Part, kParts>& parts() {
  static const std::array<Part, kParts> all = {{
      {.ring_radius = 0.85f},
      {.disc_radius = 0.75f},
      {.segments = {{{{0, -0.95f}, {0.95f, 0.75f}}},  // triangle
                    {{{0.95f, 0.75f}, {-0.95f, 0.75f}}},
                    {{{-0.95f, 0.75f}, {0, -0.95f}}}}},
      {.segments = {{{{-0.8f, -0.8f}, {0.8f, -0.8f}}},  // square
                    {{{0.8f, -0.8f}, {0.8f, 0.8f}}},
                    {{{0.8f, 0.8f}, {-0.8f, 0.8f}}},
                    {{{-0.8f, 0.8f}, {-0.8f, -0.8f}}}}},
      {.segments = {{{{-0.85f, -0.85f}, {0.85f, 0.85f}}},  // cross
                    {{{-0.85f, 0.85f}, {0.85f, -0.85f}}}}},
      {.segments = {{{{-0.9f, -0.8f}, {0.9f, -0.8f}}},  // T
                    {{{0, -0.8f}, {0, 0.95f}}}}},
      {.segments = {{{{-0.8f, -0.85f}, {0.8f, -0.85f}}},  // Z
                    {{{0.8f, -0.85f}, {-0.8f, 0.85f}}},
                    {{{-0.8f, 0.85f}, {0.8f, 0.85f}}}}},
      {.segments = {{{{-0.75f, -0.95f}, {-0.75f, 0.3f}}},  // cup
                    {{{-0.75f, 0.3f}, {-0.35f, 0.8f}}},
                    {{{-0.35f, 0.8f}, {0.35f, 0.8f}}},
                    {{{0.35f, 0.8f}, {0.75f, 0.3f}}},
                    {{{0.75f, 0.3f}, {0.75f, -0.95f}}}}},
      {.segments = {{{{-0.9f, -0.55f}, {0.9f, -0.55f}}},  // two bars
                    {{{-0.9f, 0.55f}, {0.9f, 0.55f}}}}},
      {.segments = {{{{-0.5f, -0.95f}, {0.65f, 0}}},  // angle
                    {{{0.65f, 0}, {-0.5f, 0.95f}}}}},
  }};
  return all;
}

struct Pose {
  Point center;
  float scale = 1;  // pixels per unit
  float cosine = 1;
  float sine = 0;

  Point place(Point point) const {
    return {center.x + scale * (cosine * point.x - sine * point.y),
            center.y + scale * (sine * point.x + cosine * point.y)};
  }
};

Pose draw_pose(Point center, float scale, float degrees, HashStream& random) {
  const double angle = random.uniform(-degrees, degrees) * (std::numbers::pi / 180);
  return {center, scale, static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
}

void draw_part(Canvas& canvas, const Part& part, const Pose& pose, float stroke_radius,
               Color color) {
  for (const auto& [from, to] : part.segments)
    canvas.draw_segment(pose.place(from), pose.place(to), stroke_radius, color);
  if (part.ring_radius > 0)
    canvas.draw_ring(pose.center, part.ring_radius * pose.scale, stroke_radius, color);
  if (part.disc_radius > 0) canvas.draw_disc(pose.center, part.disc_radius * pose.scale, color);
}

// Short strokes beneath the glyph, fainter than its own.
void draw_clutter(Canvas& canvas, const Palette& palette, HashStream& random) {
  constexpr int64_t kStrokes = 4;
  constexpr auto kFar = static_cast<float>(Canvas::kSide);
  for (int64_t i = 0; i < kStrokes; ++i) {
    Point from;
    from.x = random.uniform(0, kFar);
    from.y = random.uniform(0, kFar);
    Point to;
    to.x = from.x + random.uniform(-5, 5);
    to.y = from.y + random.uniform(-5, 5);
    const float radius = random.uniform(0.4f, 1.0f);
    const float faintness = random.uniform(0.25f, 0.75f);
    canvas.draw_segment(from, to, radius, blend(palette.background, palette.foreground, faintness));
  }
}

}  // namespace

int64_t draw_glyph(const GlyphsOptions& options, uint64_t seed, uint64_t index,
                   std::span<uint8_t> pixels) {
  check(options.classes == kParts || options.classes == kParts * kParts,
        "draw_glyph: classes must be 10 or 100, got ", options.classes);
  check(pixels.size() == static_cast<size_t>(Canvas::kBytes), "draw_glyph: pixels must have ",
        Canvas::kBytes, " bytes, got ", pixels.size());

  const auto label = static_cast<int64_t>(index % static_cast<uint64_t>(options.classes));
  HashStream random(seed ^ kGlyphGenerator, index);
  const Palette palette = draw_palette(random);

  Canvas canvas;
  canvas.fill_gradient(palette.background, palette.background_end, palette.gradient_direction);
  draw_clutter(canvas, palette, random);

  const float middle = static_cast<float>(Canvas::kSide) / 2;
  const float stroke_radius = random.uniform(0.6f, 1.2f);
  Point center;
  center.x = middle + random.uniform(-3, 3);
  center.y = middle + random.uniform(-3, 3);
  if (options.classes == kParts) {
    const float scale = random.uniform(6, 11);
    const Pose pose = draw_pose(center, scale, 25, random);
    draw_part(canvas, parts()[static_cast<size_t>(label)], pose, stroke_radius, palette.foreground);
  } else {
    // Parts sit on a diagonal, the longest line a square has; each also turns a little by itself.
    const float scale = random.uniform(5.2f, 6.8f);
    const Pose whole = draw_pose(center, scale, 20, random);
    const std::array<int64_t, 2> which = {label / kParts, label % kParts};
    for (size_t i = 0; i < which.size(); ++i) {
      const float side = i == 0 ? -1.0f : 1.0f;
      const Point place = whole.place({side * 1.08f, side * 1.08f});
      const float part_scale = scale * random.uniform(0.85f, 1.05f);
      Pose own = draw_pose(place, part_scale, 5, random);
      const float cosine = own.cosine * whole.cosine - own.sine * whole.sine;
      own.sine = own.sine * whole.cosine + own.cosine * whole.sine;
      own.cosine = cosine;
      draw_part(canvas, parts()[static_cast<size_t>(which[i])], own, stroke_radius,
                palette.foreground);
    }
  }

  canvas.add_noise(palette.noise_amplitude, random);
  canvas.write(pixels);
  return label;
}

}  // namespace kelvin
