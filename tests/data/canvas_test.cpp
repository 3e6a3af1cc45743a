#include "kelvin/data/canvas.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

constexpr Color kBlack{0, 0, 0};
constexpr Color kWhite{1, 1, 1};

using Pixels = std::array<uint8_t, Canvas::kBytes>;

Pixels written(const Canvas& canvas) {
  Pixels pixels{};
  canvas.write(pixels);
  return pixels;
}

// Mean over the red plane, in pixels of full coverage.
double area(const Canvas& canvas) {
  const Pixels pixels = written(canvas);
  double sum = 0;
  for (int64_t i = 0; i < Canvas::kSide * Canvas::kSide; ++i) sum += pixels[static_cast<size_t>(i)];
  return sum / 255;
}

TEST(Canvas, StartsBlack) { EXPECT_EQ(written(Canvas{}), Pixels{}); }

TEST(Canvas, WritesPlanesOfRedGreenBlue) {
  Canvas canvas;
  canvas.fill_gradient({1, 0.5f, 0}, {1, 0.5f, 0}, {1, 0});
  const Pixels pixels = written(canvas);
  EXPECT_EQ(pixels[0], 255);
  EXPECT_EQ(pixels[1024], 128);
  EXPECT_EQ(pixels[2048], 0);
}

TEST(Canvas, GradientRunsAlongItsDirection) {
  Canvas canvas;
  canvas.fill_gradient(kBlack, kWhite, {0, 1});
  const Pixels pixels = written(canvas);
  EXPECT_EQ(pixels[0], pixels[31]);
  EXPECT_NEAR(pixels[0], 255.0 / 64, 1);
  EXPECT_NEAR(pixels[31 * 32], 255 - 255.0 / 64, 1);
}

TEST(Canvas, DiscCoversItsArea) {
  Canvas canvas;
  canvas.draw_disc({16.3f, 15.1f}, 8, kWhite);
  EXPECT_NEAR(area(canvas), M_PI * 64, 1.5);
}

TEST(Canvas, RingCoversItsArea) {
  Canvas canvas;
  canvas.draw_ring({15.6f, 16.2f}, 9, 1.5f, kWhite);
  EXPECT_NEAR(area(canvas), 2 * M_PI * 9 * 3, 2);
}

TEST(Canvas, SegmentCoversItsAreaWithItsRoundEnds) {
  Canvas canvas;
  canvas.draw_segment({8.2f, 9.7f}, {23.2f, 17.7f}, 2, kWhite);
  EXPECT_NEAR(area(canvas), 17 * 4 + M_PI * 4, 1.5);
}

TEST(Canvas, SegmentWithoutLengthIsADisc) {
  Canvas segment;
  segment.draw_segment({12, 12}, {12, 12}, 3, kWhite);
  Canvas disc;
  disc.draw_disc({12, 12}, 3, kWhite);
  EXPECT_EQ(written(segment), written(disc));
}

TEST(Canvas, CutsOffWhatFallsOutside) {
  Canvas canvas;
  canvas.draw_disc({0, 16}, 8, kWhite);
  EXPECT_NEAR(area(canvas), M_PI * 64 / 2, 1.5);
  Canvas empty;
  empty.draw_segment({-50, -50}, {-40, 90}, 2, kWhite);
  empty.draw_disc({80, 16}, 3, kWhite);
  EXPECT_EQ(area(empty), 0);
}

TEST(Canvas, HalfCoveredPixelsAreHalfPainted) {
  Canvas canvas;
  canvas.draw([](Point point) { return point.x - 10.5f; }, kWhite);
  const Pixels pixels = written(canvas);
  EXPECT_EQ(pixels[9], 255);
  EXPECT_EQ(pixels[10], 128);
  EXPECT_EQ(pixels[11], 0);
}

TEST(Canvas, NoiseStaysWithinItsAmplitudeAndAveragesToNothing) {
  constexpr Color kGray{0.5f, 0.5f, 0.5f};
  Canvas canvas;
  canvas.fill_gradient(kGray, kGray, {1, 0});
  HashStream random(1, 2);
  canvas.add_noise(0.2f, random);
  double sum = 0;
  double squares = 0;
  for (const uint8_t pixel : written(canvas)) {
    const double deviation = pixel / 255.0 - 0.5;
    EXPECT_LE(std::abs(deviation), 0.203);
    sum += deviation;
    squares += deviation * deviation;
  }
  EXPECT_NEAR(sum / Canvas::kBytes, 0, 0.005);
  // A triangular distribution on (-a, a) has variance a^2 / 6.
  EXPECT_NEAR(squares / Canvas::kBytes, 0.04 / 6, 0.0007);
}

TEST(Canvas, RejectsABufferOfAnotherSize) {
  std::array<uint8_t, 100> pixels{};
  EXPECT_THROW(Canvas{}.write(pixels), Error);
}

}  // namespace
}  // namespace kelvin
