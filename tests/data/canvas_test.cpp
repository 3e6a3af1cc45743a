#include "kelvin/data/canvas.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "kelvin/core/check.h"

namespace kelvin::canvas_test {

TEST(HashStream, IsAFunctionOfSeedAndIndex) {
  HashStream one(5, 6);
  HashStream two(5, 6);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(one.bits(), two.bits());
}

TEST(HashStream, NeighboursShareNothing) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (uint64_t index = 0; index < 50; ++index) {
      HashStream stream(seed, index);
      for (int i = 0; i < 10; ++i) seen.insert(stream.bits());
    }
  }
  EXPECT_EQ(seen.size(), 20u * 50 * 10);
}

TEST(HashStream, UniformFillsItsInterval) {
  HashStream stream(1, 1);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < 10000; ++i) {
    const float value = stream.uniform(-2, 4);
    EXPECT_GE(value, -2);
    EXPECT_LT(value, 4);
    sum += value;
    squares += (value - 1) * (value - 1);
  }
  EXPECT_NEAR(sum / 10000, 1, 0.06);
  EXPECT_NEAR(squares / 10000, 3, 0.1);
}

TEST(HashStream, CoinAndBelowAreFair) {
  HashStream stream(2, 1);
  int heads = 0;
  int fours = 0;
  for (int i = 0; i < 10000; ++i) {
    heads += stream.coin() ? 1 : 0;
    fours += stream.below(5) == 4 ? 1 : 0;
  }
  EXPECT_NEAR(heads, 5000, 200);
  EXPECT_NEAR(fours, 2000, 160);
}

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

}  // namespace kelvin::canvas_test
