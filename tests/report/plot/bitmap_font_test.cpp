#include "kelvin/report/plot/bitmap_font.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace kelvin::bitmap_font_test {

constexpr TextColour kRedText = {.red = 200, .green = 10, .blue = 20};

Picture blank(int64_t width, int64_t height) {
  return {.width = width,
          .height = height,
          .rgb = std::vector<uint8_t>(static_cast<size_t>(width * height * 3), 255)};
}

// Ink as '#', row by row.
std::string drawn(const std::string& text) {
  auto picture = blank(pixel_width(text), kTextHeight);
  draw_text(picture, 0, 0, text, kRedText);
  std::string rows;
  for (int64_t y = 0; y < picture.height; ++y) {
    for (int64_t x = 0; x < picture.width; ++x) {
      rows += picture.rgb.at(static_cast<size_t>((y * picture.width + x) * 3)) == 200 ? '#' : ' ';
    }
    rows += '\n';
  }
  return rows;
}

TEST(DrawText, DrawsLettersOnALine) {
  EXPECT_EQ(drawn("Tip"),
            "##### #      \n"
            "  #          \n"
            "  #   # #### \n"
            "  #   # #   #\n"
            "  #   # #   #\n"
            "  #   # #   #\n"
            "  #   # #### \n"
            "        #    \n"
            "        #    \n");
}

TEST(DrawText, GivesEveryPrintableCharacterAShapeOfItsOwn) {
  std::map<std::string, char> shapes;
  for (char letter = '!'; letter <= '~'; ++letter) {
    const auto shape = drawn(std::string(1, letter));
    EXPECT_NE(shape.find('#'), std::string::npos) << letter;
    const auto [other, is_new] = shapes.emplace(shape, letter);
    EXPECT_TRUE(is_new) << letter << " looks like " << other->second;
  }
  EXPECT_EQ(shapes.size(), 94U);
}

TEST(DrawText, DrawsAnEmptyBoxForWhatItDoesNotKnow) {
  EXPECT_EQ(drawn("\xc3\xa4"), drawn("\x01"));
  EXPECT_EQ(drawn("\xe2\x82\xac"), drawn("\x7f"));
  EXPECT_EQ(drawn("\xff"), drawn("\x7f"));
  EXPECT_EQ(pixel_width("\xc3\xa4\xc3\xb6"), 11);
}

TEST(DrawText, UsesTheColour) {
  auto picture = blank(1, 9);
  draw_text(picture, 0, 0, "|", kRedText);
  EXPECT_EQ(picture.rgb.at(0), 200);
  EXPECT_EQ(picture.rgb.at(1), 10);
  EXPECT_EQ(picture.rgb.at(2), 20);
  EXPECT_EQ(picture.rgb.at(26), 255);
}

TEST(DrawText, LeavesOutWhatIsOutsideOfThePicture) {
  auto picture = blank(10, 5);
  const auto before = picture.rgb;
  draw_text(picture, -50, 0, "MMM", kRedText);
  draw_text(picture, 0, 5, "MMM", kRedText);
  draw_text(picture, 10, 0, "MMM", kRedText);
  draw_text(picture, 0, -9, "MMM", kRedText);
  EXPECT_EQ(picture.rgb, before);
  draw_text(picture, -3, -3, "MMMMMMMMM", kRedText);
  EXPECT_NE(picture.rgb, before);
}

TEST(PixelWidth, AddsLettersAndTheGapsBetweenThem) {
  EXPECT_EQ(pixel_width(""), 0);
  EXPECT_EQ(pixel_width("i"), 1);
  EXPECT_EQ(pixel_width("M"), 5);
  EXPECT_EQ(pixel_width("iM"), 7);
  EXPECT_EQ(pixel_width(" "), 3);
  EXPECT_EQ(pixel_width("n01443537"), 8 * 5 + 3 + 8);
}

TEST(ShortenedTo, KeepsWhatFits) {
  EXPECT_EQ(shortened_to("pickup_truck", pixel_width("pickup_truck")), "pickup_truck");
  EXPECT_EQ(shortened_to("", 0), "");
}

TEST(ShortenedTo, EndsInDotsAndUsesTheRoom) {
  const std::string name = "aquarium_fish_with_a_long_name";
  for (int64_t width = pixel_width("a..."); width < pixel_width(name); ++width) {
    const auto text = shortened_to(name, width);
    ASSERT_TRUE(text.ends_with("...")) << text;
    EXPECT_LE(pixel_width(text), width);
    const auto one_more = name.substr(0, text.size() - 2) + "...";
    EXPECT_GT(pixel_width(one_more), width) << text;
  }
}

TEST(ShortenedTo, DoesNotCutThroughACharacter) {
  EXPECT_EQ(shortened_to("\xc3\xa4\xc3\xb6\xc3\xbc", 12), "\xc3\xa4...");
  EXPECT_EQ(shortened_to("abc", 1), "...");
}

}  // namespace kelvin::bitmap_font_test
