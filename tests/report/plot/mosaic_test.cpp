#include "kelvin/report/plot/mosaic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "kelvin/report/plot/bitmap_font.h"
#include "tests/support/errors.h"

namespace kelvin::mosaic_test {

using Pixel = std::array<uint8_t, 3>;

Picture one_colour(int64_t width, int64_t height, const Pixel& colour) {
  Picture picture{.width = width, .height = height};
  for (int64_t i = 0; i < width * height; ++i) {
    picture.rgb.insert(picture.rgb.end(), colour.begin(), colour.end());
  }
  return picture;
}

Pixel pixel_at(const Picture& picture, int64_t x, int64_t y) {
  const auto at = static_cast<size_t>((y * picture.width + x) * 3);
  return {picture.rgb.at(at), picture.rgb.at(at + 1), picture.rgb.at(at + 2)};
}

// The smallest box around all pixels of a colour.
struct Extent {
  int64_t left = 1 << 30;
  int64_t top = 1 << 30;
  int64_t right = -1;
  int64_t bottom = -1;

  int64_t width() const { return right - left + 1; }
  int64_t height() const { return bottom - top + 1; }
};

Extent extent_of(const Picture& picture, const Pixel& colour) {
  Extent extent;
  for (int64_t y = 0; y < picture.height; ++y) {
    for (int64_t x = 0; x < picture.width; ++x) {
      if (pixel_at(picture, x, y) != colour) continue;
      extent = {.left = std::min(extent.left, x),
                .top = std::min(extent.top, y),
                .right = std::max(extent.right, x),
                .bottom = std::max(extent.bottom, y)};
    }
  }
  return extent;
}

constexpr Pixel kRed = {255, 0, 0};
constexpr Pixel kBlue = {0, 0, 255};
constexpr Pixel kInk = {40, 40, 48};

TEST(PictureOf, TurnsPlanesIntoPixels) {
  const RawImages images{.channels = 3,
                         .height = 1,
                         .width = 2,
                         .pixels = {0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6},
                         .labels = {0, 0}};
  const auto picture = picture_of(images, 1);
  EXPECT_EQ(picture.width, 2);
  EXPECT_EQ(picture.height, 1);
  EXPECT_EQ(picture.rgb, (std::vector<uint8_t>{1, 3, 5, 2, 4, 6}));
}

TEST(PictureOf, RepeatsGrey) {
  const RawImages images{.channels = 1, .height = 2, .width = 1, .pixels = {7, 9}, .labels = {0}};
  EXPECT_EQ(picture_of(images, 0).rgb, (std::vector<uint8_t>{7, 7, 7, 9, 9, 9}));
}

TEST(PictureOf, RefusesAnIndexBeyondTheImages) {
  const RawImages images{.channels = 1, .height = 1, .width = 1, .pixels = {7}, .labels = {0}};
  EXPECT_EQ(error_of([&] { picture_of(images, 1); }), "mosaic: index must be from 0 to 0, got 1");
  EXPECT_NE(error_of([&] { picture_of(images, -1); }), "");
}

TEST(PictureOf, RefusesTwoChannels) {
  const RawImages images{.channels = 2, .height = 1, .width = 1, .pixels = {7, 8}, .labels = {0}};
  EXPECT_EQ(error_of([&] { picture_of(images, 0); }),
            "mosaic: images must have 1 or 3 channels, got 2");
}

TEST(PictureOf, RefusesImagesWithoutTheirBytes) {
  const RawImages images{.channels = 1, .height = 2, .width = 2, .pixels = {7}, .labels = {0}};
  EXPECT_EQ(error_of([&] { picture_of(images, 0); }),
            "mosaic: 1 images must have 4 bytes each, got 1");
}

TEST(DrawMosaic, EnlargesSmallImagesByAWholeFactor) {
  auto image = one_colour(32, 32, kRed);
  std::copy(kBlue.begin(), kBlue.end(), image.rgb.begin());
  const auto mosaic = draw_mosaic({{.picture = image, .label = "cat"}}, 1);
  const auto corner = extent_of(mosaic, kBlue);
  EXPECT_EQ(corner.width(), 3);
  EXPECT_EQ(corner.height(), 3);
  EXPECT_EQ(extent_of(mosaic, kRed).width(), 96);
  EXPECT_EQ(extent_of(draw_mosaic({{.picture = one_colour(28, 28, kRed)}}, 1), kRed).width(), 84);
  EXPECT_EQ(extent_of(draw_mosaic({{.picture = one_colour(64, 64, kRed)}}, 1), kRed).width(), 64);
  EXPECT_EQ(extent_of(draw_mosaic({{.picture = one_colour(96, 40, kRed)}}, 1), kRed).height(), 40);
}

TEST(DrawMosaic, ShrinksLargeImagesAndKeepsTheirShape) {
  const auto extent = extent_of(draw_mosaic({{.picture = one_colour(500, 250, kRed)}}, 1), kRed);
  EXPECT_EQ(extent.width(), 96);
  EXPECT_EQ(extent.height(), 48);
  EXPECT_EQ(extent_of(draw_mosaic({{.picture = one_colour(1, 3000, kRed)}}, 1), kRed).width(), 1);
}

TEST(DrawMosaic, PutsTheLabelBelowInTheMiddle) {
  const auto mosaic = draw_mosaic({{.picture = one_colour(32, 32, kRed), .label = "HEH"}}, 1);
  const auto image = extent_of(mosaic, kRed);
  const auto label = extent_of(mosaic, kInk);
  EXPECT_EQ(label.width(), pixel_width("HEH"));
  EXPECT_GT(label.top, image.bottom);
  EXPECT_LE(std::abs(label.left - image.left - (image.right - label.right)), 1);
  EXPECT_LT(label.bottom, mosaic.height);
}

TEST(DrawMosaic, WidensTheCellsForLabelsAndShortensTheLongest) {
  const auto width = [](const std::string& label) {
    const auto mosaic = draw_mosaic({{.picture = one_colour(50, 50, kRed), .label = label}}, 1);
    return extent_of(mosaic, kInk).width();
  };
  EXPECT_EQ(width("HEHEHEHEHEH"), pixel_width("HEHEHEHEHEH"));
  const std::string endless(100, 'H');
  EXPECT_EQ(width(endless), pixel_width(shortened_to(endless, 96)));
}

TEST(DrawMosaic, FillsRowAfterRow) {
  const MosaicImage red{.picture = one_colour(96, 96, kRed), .label = "a"};
  const MosaicImage blue{.picture = one_colour(96, 96, kBlue), .label = "b"};
  const auto mosaic = draw_mosaic({red, red, blue}, 2);
  const auto above = extent_of(mosaic, kRed);
  const auto below = extent_of(mosaic, kBlue);
  EXPECT_GT(above.width(), 2 * 96);
  EXPECT_EQ(above.height(), 96);
  EXPECT_EQ(below.left, above.left);
  EXPECT_GT(below.top, above.bottom + kTextHeight);
  EXPECT_EQ(mosaic.width - 1 - above.right, above.left) << "equal margins";
}

TEST(DrawMosaic, IsNoWiderThanItsImages) {
  const MosaicImage image{.picture = one_colour(96, 96, kRed), .label = "a"};
  EXPECT_EQ(draw_mosaic({image, image}, 100).width, draw_mosaic({image, image}, 2).width);
}

TEST(DrawMosaic, RefusesNothingToDraw) {
  EXPECT_EQ(error_of([] { draw_mosaic({}, 3); }), "mosaic: needs images, got none");
  EXPECT_EQ(error_of([] { draw_mosaic({{.picture = one_colour(1, 1, kRed)}}, 0); }),
            "mosaic: needs at least one column, got 0");
}

TEST(DrawMosaic, RefusesAnImageWithoutItsBytes) {
  EXPECT_EQ(error_of([] {
              draw_mosaic({{.picture = {.width = 2, .height = 2, .rgb = {1}}, .label = "cat"}}, 1);
            }),
            "mosaic: image 'cat' of 2x2 must have 3 bytes per pixel, got 1 bytes");
}

}  // namespace kelvin::mosaic_test
