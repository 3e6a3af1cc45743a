#include "kelvin/formats/resize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/pictures.h"

namespace kelvin::resize_test {

// Pictures, boxes and sizes; for each, Pillow's result goes into a file of its number.
constexpr auto kScript = R"(
import random
random.seed(7)
def case(width, height, box, out_width, out_height):
    noise = np.random.RandomState(case.number).randint(0, 256, (height, width, 3), dtype='uint8')
    image = Image.fromarray(noise)
    left, top, box_width, box_height = box
    edges = (left, top, left + box_width, top + box_height)
    keep(f'{case.number}.in', image.tobytes())
    # Rows before columns, as Pillow did it in any case up to version 12: 13 goes by what is faster.
    rows = image.resize((out_width, height), Image.BILINEAR, (edges[0], 0, edges[2], height))
    columns = (0, edges[1], out_width, edges[3])
    keep(f'{case.number}.out', rows.resize((out_width, out_height), Image.BILINEAR, columns).tobytes())
    print(width, height, *map(repr, box), out_width, out_height)
    case.number += 1
case.number = 0
def whole(width, height, out_width, out_height):
    case(width, height, (0, 0, width, height), out_width, out_height)

whole(32, 32, 32, 32)
whole(1, 1, 1, 1)
whole(1, 1, 9, 4)
whole(7, 5, 1, 1)
whole(32, 32, 224, 224)
whole(1000, 1, 3, 1)
whole(1, 1000, 1, 3)
whole(1, 1000, 40, 7)
whole(3000, 2, 5, 200)
whole(2, 3000, 200, 5)
whole(300, 200, 300, 77)
whole(300, 200, 77, 200)
whole(9, 9, 8, 10)
case(50, 40, (10, 5, 24, 24), 24, 24)
case(50, 40, (10.5, 5.25, 24, 24), 24, 24)
case(50, 40, (49.9, 39.9, 0.1, 0.1), 8, 8)
case(50, 40, (20, 20, 1e-6, 1e-6), 3, 3)
case(50, 40, (0, 0, 0.5, 40), 5, 5)
short = 375 / 256
case(500, 375, ((500 - 224 * short) / 2, 16 * short, 224 * short, 224 * short), 224, 224)
for _ in range(250):
    width, height = random.choice([3, 20, 75, 130]), random.choice([1, 17, 64, 110])
    left, top = random.uniform(0, width * 0.7), random.uniform(0, height * 0.7)
    box = (left, top, random.uniform(0.01, width - left), random.uniform(0.01, height - top))
    case(width, height, box, random.choice([1, 2, 7, 8, 33, 96]), random.choice([1, 2, 9, 32, 70]))
)";

struct Numbers {
  int64_t width = 0;
  int64_t height = 0;
  Box box = {};
  int64_t out_width = 0;
  int64_t out_height = 0;
};

std::istream& operator>>(std::istream& text, Numbers& numbers) {
  return text >> numbers.width >> numbers.height >> numbers.box.left >> numbers.box.top >>
         numbers.box.width >> numbers.box.height >> numbers.out_width >> numbers.out_height;
}

Picture noise(int64_t width, int64_t height) {
  std::mt19937 random(3);
  Picture picture{.width = width, .height = height};
  for (int64_t i = 0; i < width * height * 3; ++i) {
    picture.rgb.push_back(static_cast<uint8_t>(random()));
  }
  return picture;
}

std::vector<uint8_t> resized(const Picture& picture, const Box& box, int64_t width,
                             int64_t height) {
  std::vector<uint8_t> rgb(static_cast<size_t>(width * height * 3));
  resize(picture, box, width, height, rgb);
  return rgb;
}

TEST(Resize, GivesTheBytesOfPillow) {
  const TemporaryFolder folder;
  std::istringstream cases(python_output(kPicturesInPython + kScript, {folder.path().string()}));
  int number = 0;
  for (Numbers numbers; cases >> numbers; ++number) {
    const auto name = std::to_string(number);
    const Picture picture{.width = numbers.width,
                          .height = numbers.height,
                          .rgb = as_bytes(whole_file(folder / (name + ".in")))};
    const Picture expected{.width = numbers.out_width,
                           .height = numbers.out_height,
                           .rgb = as_bytes(whole_file(folder / (name + ".out")))};
    const Picture actual{
        .width = numbers.out_width,
        .height = numbers.out_height,
        .rgb = resized(picture, numbers.box, numbers.out_width, numbers.out_height)};
    expect_same_picture(actual, expected, "case " + name);
  }
  EXPECT_EQ(number, 19 + 250);
}

TEST(Resize, KeepsAWholePictureOfTheSameSize) {
  const auto picture = noise(13, 9);
  EXPECT_EQ(resized(picture, {.width = 13, .height = 9}, 13, 9), picture.rgb);
}

TEST(Resize, CutsOutABoxOfWholePixels) {
  const auto picture = noise(13, 9);
  const auto cut = resized(picture, {.left = 4, .top = 2, .width = 5, .height = 3}, 5, 3);
  for (size_t y = 0; y < 3; ++y) {
    for (size_t i = 0; i < 15; ++i) {
      EXPECT_EQ(cut[y * 15 + i], picture.rgb[((y + 2) * 13 + 4) * 3 + i]);
    }
  }
}

TEST(Resize, KeepsOneColourAtAnySize) {
  for (const uint8_t value : {0, 1, 127, 254, 255}) {
    const Picture picture{
        .width = 700, .height = 90, .rgb = std::vector<uint8_t>(size_t{700} * 90 * 3, value)};
    for (const int64_t size : {1, 3, 10, 800}) {
      const auto out =
          resized(picture, {.left = 0.3, .top = 0.7, .width = 690, .height = 80}, size, size);
      EXPECT_EQ(out, std::vector<uint8_t>(static_cast<size_t>(size * size * 3), value));
    }
  }
}

TEST(Resize, TakesABoxThatRoundingPutOverTheEdge) {
  const auto picture = noise(10, 10);
  const double beyond = 10 + 1e-9;
  EXPECT_EQ(resized(picture, {.width = beyond, .height = beyond}, 10, 10), picture.rgb);
}

TEST(Resize, RefusesABoxOutsideOfThePicture) {
  const auto picture = noise(10, 8);
  EXPECT_EQ(
      error_of([&] { resized(picture, {.left = 3, .top = 0, .width = 8, .height = 8}, 4, 4); }),
      "resize: the box must lie inside of the picture of 10x8, got 8x8 at 3, 0");
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Box& box : {Box{-1, 0, 5, 5}, Box{0, -0.1, 5, 5}, Box{0, 0, 0, 5}, Box{0, 0, 5, -1},
                         Box{0, 0, 5, 8.1}, Box{nan, 0, 5, 5}, Box{0, 0, nan, 5},
                         Box{0, 0, infinity, 5}, Box{10, 0, 1e-30, 5}, Box{1e300, 0, 1, 5}}) {
    EXPECT_NE(error_of([&] { resized(picture, box, 4, 4); }), "");
  }
}

TEST(Resize, RefusesSizesThatDoNotFitTheBytes) {
  const auto picture = noise(10, 8);
  std::vector<uint8_t> rgb(48);
  const Box box{.width = 10, .height = 8};
  EXPECT_EQ(error_of([&] { resize(picture, box, 4, 5, rgb); }),
            "resize: must write at least one pixel, 3 bytes each, got 4x5 and 48 bytes");
  EXPECT_NE(error_of([&] { resize(picture, box, 0, 4, rgb); }), "");
  EXPECT_NE(error_of([&] { resize(picture, box, -4, -4, rgb); }), "");
  EXPECT_NE(error_of([&] { resize(picture, box, int64_t{1} << 40, int64_t{1} << 40, rgb); }), "");
  auto torn = picture;
  torn.rgb.pop_back();
  EXPECT_EQ(
      error_of([&] { resize(torn, box, 4, 4, rgb); }),
      "resize: a picture of 10x8 must have 3 bytes per pixel and at least one, got 239 bytes");
  EXPECT_NE(error_of([&] { resize({}, box, 4, 4, rgb); }), "");
}

TEST(ResizeWindow, GivesAPartOfTheWholePictureResized) {
  const auto picture = noise(100, 75);
  constexpr PictureSize kFull{.width = 85, .height = 64};
  const auto whole = resized(picture, {.width = 100, .height = 75}, kFull.width, kFull.height);
  for (const Window& window : {Window{0, 0, 85, 64}, Window{14, 4, 56, 56}, Window{84, 63, 1, 1}}) {
    std::vector<uint8_t> part(static_cast<size_t>(window.width * window.height * 3));
    resize_window(picture, kFull, window, part);
    std::vector<uint8_t> expected;
    for (int64_t y = window.top; y < window.top + window.height; ++y) {
      const auto row = whole.begin() + (y * kFull.width + window.left) * 3;
      expected.insert(expected.end(), row, row + window.width * 3);
    }
    EXPECT_EQ(part, expected);
  }
}

TEST(ResizeWindow, RefusesAWindowBesideThePicture) {
  const auto picture = noise(10, 8);
  std::vector<uint8_t> rgb(48);
  EXPECT_EQ(error_of([&] {
              resize_window(picture, {20, 16}, {17, 0, 4, 4}, rgb);
            }),
            "resize: the window must lie inside of 20x16, got 4x4 at 17, 0");
  EXPECT_NE(error_of([&] { resize_window(picture, {20, 16}, {0, -1, 4, 4}, rgb); }), "");
  EXPECT_NE(error_of([&] { resize_window(picture, {20, 16}, {0, 0, 4, 5}, rgb); }), "");
  EXPECT_NE(error_of([&] { resize_window(picture, {0, 0}, {0, 0, 4, 4}, rgb); }), "");
}

}  // namespace kelvin::resize_test
