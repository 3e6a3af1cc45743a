#include "kelvin/data/image_files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "kelvin/data/augmentation.h"
#include "kelvin/formats/png_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/python.h"

namespace kelvin::image_files_test {

// What Pillow makes of a picture by torchvision's rules: shorter side to `resized`, middle of
// `size`.
constexpr auto kPillow = R"(
import sys
from PIL import Image
path, out, resized, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
image = Image.open(path).convert("RGB")
w, h = image.size
short, long = min(w, h), max(w, h)
new_long = int(resized * long / short)
image = image.resize((resized, new_long) if w <= h else (new_long, resized), Image.BILINEAR)
w, h = image.size
left, top = int(round((w - size) / 2.0)), int(round((h - size) / 2.0))
open(out, "wb").write(image.crop((left, top, left + size, top + size)).tobytes())
)";

Picture busy_picture(int64_t width, int64_t height) {
  Picture picture{.width = width, .height = height};
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      picture.rgb.push_back(static_cast<uint8_t>(x * 7 + y * 3));
      picture.rgb.push_back(static_cast<uint8_t>((x * y) / 5));
      picture.rgb.push_back(static_cast<uint8_t>(((x / 9) ^ (y / 5)) * 37));
    }
  }
  return picture;
}

ImageFiles one_file(const std::string& path, const ImageFileOptions& options) {
  return {{.paths = {path}, .labels = {0}, .class_names = {"it"}}, options};
}

std::vector<uint8_t> bytes_of(const std::string& path) {
  const auto content = whole_file(path);
  return {content.begin(), content.end()};
}

TEST(ImageFiles, CutTheMiddleAsTorchvisionDoesWithPillow) {
  const TemporaryFolder folder;
  for (const auto& [width, height] : std::vector<std::pair<int64_t, int64_t>>{
           {100, 75}, {75, 100}, {64, 64}, {301, 90}, {20, 33}}) {
    write_png(folder / "picture.png", busy_picture(width, height));
    std::vector<uint8_t> ours(static_cast<size_t>(56 * 56 * 3));
    one_file(folder / "picture.png", {.size = 56}).decode_middle(0, ours);
    python_output(kPillow, {folder / "picture.png", folder / "out", "64", "56"});
    EXPECT_EQ(ours, bytes_of(folder / "out")) << width << " x " << height;
  }
}

double mean_difference(const std::vector<uint8_t>& one, const std::vector<uint8_t>& other) {
  double sum = 0;
  for (size_t i = 0; i < one.size(); ++i) sum += std::abs(int{one[i]} - int{other[i]});
  return sum / static_cast<double>(one.size());
}

TEST(ImageFiles, DecodeLargeJpegsSmallWithoutMuchDifference) {
  const TemporaryFolder folder;
  write_png(folder / "large.png", busy_picture(1000, 800));
  python_output(
      "import sys\nfrom PIL import Image, ImageFilter\n"
      "Image.open(sys.argv[1]).filter(ImageFilter.GaussianBlur(4)).save(sys.argv[2], quality=95)\n",
      {folder / "large.png", folder / "large.jpg"});
  std::vector<uint8_t> exact(static_cast<size_t>(64 * 64 * 3));
  std::vector<uint8_t> scaled(exact.size());
  one_file(folder / "large.jpg", {.size = 64, .exact_decoding = true}).decode_middle(0, exact);
  one_file(folder / "large.jpg", {.size = 64}).decode_middle(0, scaled);
  EXPECT_NE(exact, scaled) << "the scaled decoder was not used";
  EXPECT_LT(mean_difference(exact, scaled), 2);
}

TEST(ImageFiles, TakeTheSameRandomPartForTheSameStream) {
  const TemporaryFolder folder;
  write_png(folder / "picture.png", busy_picture(90, 70));
  const auto files = one_file(folder / "picture.png", {.size = 32});
  const auto draw = [&](int64_t index) {
    std::vector<uint8_t> rgb(static_cast<size_t>(32 * 32 * 3));
    auto stream = view_stream(1, 2, index);
    files.decode_random(0, stream, rgb);
    return rgb;
  };
  EXPECT_EQ(draw(5), draw(5));
  EXPECT_NE(draw(5), draw(6));
}

TEST(ImageFiles, NameTheFileThatCannotBeRead) {
  const TemporaryFolder folder;
  std::vector<uint8_t> rgb(static_cast<size_t>(32 * 32 * 3));
  const auto missing = one_file(folder / "missing.png", {.size = 32});
  EXPECT_TRUE(error_of([&] { missing.decode_middle(0, rgb); }).starts_with(folder / "missing.png"));
  write_file_atomically(folder / "text.png", "not an image");
  const auto text = one_file(folder / "text.png", {.size = 32});
  EXPECT_TRUE(error_of([&] { text.decode_middle(0, rgb); }).starts_with(folder / "text.png"));
}

TEST(ImageFiles, RejectAbsurdOptions) {
  EXPECT_EQ(error_of([] { one_file("x", {.size = 0}); }),
            "data.image_size: must be from 1 to 4096, got 0");
  EXPECT_EQ(error_of([] { one_file("x", {.crop_share = 1.5}); }),
            "data.crop_share: must be from 0.01 to 1, got 1.5");
}

}  // namespace kelvin::image_files_test
