#include "kelvin/sources/pixel_statistics.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/errors.h"
#include "tests/support/python.h"

namespace kelvin {
namespace {

TEST(PixelStatistics, OfAClosedForm) {
  // Channel 0: half 0, half 255.  Channel 1: constant.
  const RawImages images{.channels = 2,
                         .height = 1,
                         .width = 2,
                         .pixels = {0, 255, 51, 51, 255, 0, 51, 51},
                         .labels = {0, 0}};
  const auto statistics = pixel_statistics(images);
  EXPECT_EQ(statistics.mean, (std::vector<double>{0.5, 0.2}));
  EXPECT_EQ(statistics.deviation, (std::vector<double>{0.5, 0}));
}

// Larger than the rows in which 32 bits are summed.
TEST(PixelStatistics, EqualNumpyOnLargeImages) {
  RawImages images{.channels = 3, .height = 300, .width = 301, .labels = {0, 1}};
  for (int64_t i = 0; i < 2 * images.image_bytes(); ++i) {
    images.pixels.push_back(static_cast<uint8_t>(255 - (i * i + i / 7) % 23));
  }
  const auto statistics = pixel_statistics(images);
  std::istringstream expected(python_output(R"(
import numpy as np
i = np.arange(2 * 3 * 300 * 301)
x = (255 - (i * i + i // 7) % 23).reshape(2, 3, -1) / 255
print(*x.mean((0, 2)), *x.std((0, 2)))
)"));
  for (const auto& values : {statistics.mean, statistics.deviation}) {
    for (const auto value : values) {
      double number = 0;
      ASSERT_TRUE(expected >> number);
      EXPECT_NEAR(value, number, 1e-12);
    }
  }
}

TEST(PixelStatistics, DoNotOverflowOnWhite) {
  RawImages images{.channels = 1, .height = 500, .width = 500, .labels = {0}};
  images.pixels.assign(250'000, 255);
  EXPECT_EQ(pixel_statistics(images).mean.at(0), 1);
  EXPECT_EQ(pixel_statistics(images).deviation.at(0), 0);
}

TEST(PixelStatistics, NeedPixelsThatFitTheShape) {
  EXPECT_EQ(error_of([] { pixel_statistics({}); }),
            "pixel statistics: need at least one image, got none");
  EXPECT_EQ(
      error_of([] {
        pixel_statistics({.channels = 1, .height = 2, .width = 2, .pixels = {1}, .labels = {0}});
      }),
      "pixel statistics: the shape needs 4 bytes, got 1");
}

}  // namespace
}  // namespace kelvin
