#include "kelvin/formats/image_file.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/pictures.h"

namespace kelvin::image_file_test {

constexpr auto kScript = R"(
keep_with_pixels('a.png', saved(picture(64, 48), 'JPEG'))
keep_with_pixels('b.jpg', saved(picture(64, 48), 'PNG'))
)";

// Named as the other kind, as one file of ImageNet is.
const PillowSamples& samples() {
  static const PillowSamples made = pillow_samples(kScript);
  return made;
}

TEST(DecodePicture, GoesByTheFirstBytesAndNotByTheName) {
  ASSERT_EQ(samples().size(), 2U);
  for (const auto& [name, sample] : samples()) {
    expect_same_picture(decode_picture(sample.file, name), sample.decoded, name);
  }
}

TEST(DecodePicture, ShrinksAJpegAndNotAPng) {
  EXPECT_EQ(decode_picture(samples().at("a.png").file, "a.png", 2).width, 32);
  EXPECT_EQ(decode_picture(samples().at("b.jpg").file, "b.jpg", 2).width, 64);
}

TEST(PictureSize, IsReadForBothKinds) {
  for (const auto& [name, sample] : samples()) {
    EXPECT_EQ(picture_size(sample.file, name).width, 64);
    EXPECT_EQ(picture_size(sample.file, name).height, 48);
  }
}

TEST(DecodePicture, RefusesAnythingElse) {
  for (const std::string text : {"BM", "\xff\xd8", "<html>", "RIFF1234WAVE"}) {
    const auto required = "x: must be a JPEG or a PNG, its first bytes are of neither";
    EXPECT_EQ(error_of([&] { decode_picture(as_bytes(text), "x"); }), required);
    EXPECT_EQ(error_of([&] { picture_size(as_bytes(text), "x"); }), required);
  }
  EXPECT_EQ(error_of([] { decode_picture({}, "x"); }), "x: must be a JPEG or a PNG, is empty");
  EXPECT_EQ(error_of([] { picture_size({}, "x"); }), "x: must be a JPEG or a PNG, is empty");
}

TEST(DecodePicture, NamesOtherKindsOfPictures) {
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {std::string("GIF89a") + std::string(30, 'x'), "is a GIF"},
      {std::string("RIFF1234WEBPVP8 ") + std::string(30, 'x'), "is a WebP"},
      {std::string("BM") + std::string(30, 'x'), "is a BMP"},
      {std::string("II*\0xxxx", 8), "is a TIFF"},
      {std::string("MM\0*xxxx", 8), "is a TIFF"},
      {std::string("RIFF"), "its first bytes are of neither"},
      {std::string("BM"), "its first bytes are of neither"}};
  for (const auto& [text, what] : kinds) {
    const std::vector<uint8_t> bytes(text.begin(), text.end());
    EXPECT_EQ(error_of([&] { decode_picture(bytes, "x"); }), "x: must be a JPEG or a PNG, " + what);
    EXPECT_EQ(error_of([&] { picture_size(bytes, "x"); }), "x: must be a JPEG or a PNG, " + what);
  }
}

}  // namespace kelvin::image_file_test
