#include "kelvin/data/canvas.h"

#include <cmath>
#include <numbers>

#include "kelvin/core/check.h"

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

namespace {

float length(float x, float y) { return std::sqrt(x * x + y * y); }

int64_t pixel_index(float coordinate) {
  return std::clamp<int64_t>(static_cast<int64_t>(std::floor(coordinate)), 0, Canvas::kSide);
}

uint8_t to_byte(float channel) {
  return static_cast<uint8_t>(std::clamp(channel, 0.0f, 1.0f) * 255.0f + 0.5f);
}

}  // namespace

Color blend(Color from, Color to, float amount) {
  return {from.red + (to.red - from.red) * amount, from.green + (to.green - from.green) * amount,
          from.blue + (to.blue - from.blue) * amount};
}

template <class Distance>
void Canvas::draw_in_box(Point low, Point high, Distance distance, Color color) {
  draw_within(pixel_index(low.x - 1), pixel_index(high.x + 2), pixel_index(low.y - 1),
              pixel_index(high.y + 2), distance, color);
}

void Canvas::fill_gradient(Color from, Color to, Point direction) {
  const float half = static_cast<float>(kSide) / 2;
  const float reach = half * (std::abs(direction.x) + std::abs(direction.y));
  for (int64_t row = 0; row < kSide; ++row) {
    for (int64_t column = 0; column < kSide; ++column) {
      const float x = static_cast<float>(column) + 0.5f - half;
      const float y = static_cast<float>(row) + 0.5f - half;
      const float along = (x * direction.x + y * direction.y) / reach;
      pixels_[static_cast<size_t>(row * kSide + column)] = blend(from, to, 0.5f + 0.5f * along);
    }
  }
}

void Canvas::draw_segment(Point from, Point to, float radius, Color color) {
  const float along_x = to.x - from.x;
  const float along_y = to.y - from.y;
  // A segment of no length is a dot; the bound keeps the division finite.
  const float inverse = 1.0f / std::max(along_x * along_x + along_y * along_y, 1e-12f);
  const Point low{std::min(from.x, to.x) - radius, std::min(from.y, to.y) - radius};
  const Point high{std::max(from.x, to.x) + radius, std::max(from.y, to.y) + radius};
  draw_in_box(
      low, high,
      [=](Point point) {
        const float x = point.x - from.x;
        const float y = point.y - from.y;
        const float nearest = std::clamp((x * along_x + y * along_y) * inverse, 0.0f, 1.0f);
        return length(x - nearest * along_x, y - nearest * along_y) - radius;
      },
      color);
}

void Canvas::draw_ring(Point center, float ring_radius, float radius, Color color) {
  const float reach = ring_radius + radius;
  draw_in_box(
      {center.x - reach, center.y - reach}, {center.x + reach, center.y + reach},
      [=](Point point) {
        return std::abs(length(point.x - center.x, point.y - center.y) - ring_radius) - radius;
      },
      color);
}

void Canvas::draw_disc(Point center, float radius, Color color) {
  draw_in_box(
      {center.x - radius, center.y - radius}, {center.x + radius, center.y + radius},
      [=](Point point) { return length(point.x - center.x, point.y - center.y) - radius; }, color);
}

void Canvas::add_noise(float amplitude, HashStream& random) {
  // The difference of two 10-bit numbers is triangular; three channels use 60 of the 64 bits.
  const float scale = amplitude / 1024.0f;
  const auto ten_bits = [](uint64_t bits, int shift) {
    return static_cast<int32_t>((bits >> shift) & 1023);
  };
  for (Color& pixel : pixels_) {
    const uint64_t bits = random.bits();
    pixel.red += scale * static_cast<float>(ten_bits(bits, 4) - ten_bits(bits, 14));
    pixel.green += scale * static_cast<float>(ten_bits(bits, 24) - ten_bits(bits, 34));
    pixel.blue += scale * static_cast<float>(ten_bits(bits, 44) - ten_bits(bits, 54));
  }
}

void Canvas::write(std::span<uint8_t> pixels) const {
  check(pixels.size() == static_cast<size_t>(kBytes), "Canvas::write: pixels must have ", kBytes,
        " bytes, got ", pixels.size());
  const size_t plane = pixels_.size();
  for (size_t i = 0; i < plane; ++i) {
    pixels[i] = to_byte(pixels_[i].red);
    pixels[plane + i] = to_byte(pixels_[i].green);
    pixels[2 * plane + i] = to_byte(pixels_[i].blue);
  }
}

}  // namespace kelvin
