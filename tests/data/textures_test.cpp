#include "kelvin/data/textures.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/data/glyphs.h"

namespace kelvin::textures_test {

constexpr size_t kBytes = 3 * 32 * 32;
using Image = std::array<uint8_t, kBytes>;

Image texture(uint64_t seed, uint64_t index) {
  Image image{};
  draw_texture(seed, index, image);
  return image;
}

double mean(const Image& image) {
  double sum = 0;
  for (const uint8_t byte : image) sum += byte;
  return sum / kBytes;
}

double deviation(const Image& image) {
  const double center = mean(image);
  double squares = 0;
  for (const uint8_t byte : image) squares += (byte - center) * (byte - center);
  return std::sqrt(squares / kBytes);
}

TEST(Textures, AreFrozen) {
  // FNV-1a over the first 64 images.  If the generator must change, the new one gets a new name.
  uint64_t hash = 0xcbf29ce484222325;
  for (uint64_t i = 0; i < 64; ++i) {
    for (const uint8_t byte : texture(0, i)) hash = (hash ^ byte) * 0x100000001b3;
  }
  EXPECT_EQ(hash, 0x2b1003c124000b41u);
}

TEST(Textures, DrawnTwiceAreTheSameBytes) { EXPECT_EQ(texture(3, 17), texture(3, 17)); }

TEST(Textures, DoNotDependOnTheOrderTheyAreDrawnIn) {
  std::vector<Image> forward;
  for (uint64_t i = 0; i < 20; ++i) forward.push_back(texture(1, i));
  for (uint64_t i = 20; i-- > 0;) EXPECT_EQ(texture(1, i), forward[i]);
}

TEST(Textures, OfDifferentSeedsDiffer) { EXPECT_NE(texture(1, 5), texture(2, 5)); }

TEST(Textures, OfOneClassDiffer) { EXPECT_NE(texture(1, 5), texture(1, 15)); }

TEST(Textures, HaveAsManyImagesOfEachClass) {
  std::vector<int64_t> counts(kTextureClasses);
  Image image{};
  for (uint64_t i = 0; i < 200; ++i) ++counts.at(static_cast<size_t>(draw_texture(0, i, image)));
  for (const int64_t count : counts) EXPECT_EQ(count, 200 / kTextureClasses);
}

TEST(Textures, AreAsBrightAndAsContrastyAsGlyphs) {
  double texture_mean = 0;
  double glyph_mean = 0;
  double texture_deviation = 0;
  double glyph_deviation = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const Image drawn = texture(0, i);
    texture_mean += mean(drawn) / 1000;
    texture_deviation += deviation(drawn) / 1000;
    Image glyph{};
    draw_glyph({}, 0, i, glyph);
    glyph_mean += mean(glyph) / 1000;
    glyph_deviation += deviation(glyph) / 1000;
  }
  EXPECT_NEAR(texture_mean, glyph_mean, 5);
  EXPECT_NEAR(texture_deviation, glyph_deviation, 5);
}

TEST(Textures, RejectABufferOfAnotherSize) {
  std::array<uint8_t, kBytes + 1> large{};
  EXPECT_THROW(draw_texture(0, 0, large), Error);
  EXPECT_THROW(draw_texture(0, 0, {}), Error);
}

}  // namespace kelvin::textures_test
