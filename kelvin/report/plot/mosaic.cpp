#include "kelvin/report/plot/mosaic.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/formats/resize.h"

namespace kelvin {
namespace {

constexpr int64_t kPitch = 6;  // columns of a letter and of the gap behind it, below
constexpr size_t kLettersPerSheet = 12;
constexpr unsigned char kFirst = ' ';
constexpr unsigned char kUnknown = 127;  // the last one: an empty box
constexpr int64_t kSpaceWidth = 3;

using Sheet = std::array<std::string_view, kTextHeight>;

// From the space on, in the order of ASCII.
constexpr std::array<Sheet, 8> kSheets = {{
    {{
        "        #    # #   # #    #   ##     ##     #      #   #               ",
        "        #    # #   # #   #### ##  # #  #    #     #     #     #     #  ",
        "        #    # #  ##### # #      #  # #     #    #       #  # # #   #  ",
        "        #          # #   ###    #    #           #       #   ###  #####",
        "        #         #####   # #  #    # # #        #       #  # # #   #  ",
        "                   # #  ####  #  ## #  #          #     #     #     #  ",
        "        #          # #    #      ##  ## #          #   #               ",
        "                                                                       ",
        "                                                                       ",
    }},
    {{
        "                      #  ###    #    ###   ###     #  #####   ##  #####",
        "                      # #   #  ##   #   # #   #   ##  #      #        #",
        "                     #  #  ##   #       #     #  # #  ####  #        # ",
        "       ###          #   # # #   #     ##    ##  #  #      # ####    #  ",
        "                   #    ##  #   #    #        # #####     # #   #   #  ",
        " ##               #     #   #   #   #     #   #    #  #   # #   #  #   ",
        "  #           #   #      ###   ###  #####  ###     #   ###   ###   #   ",
        " #                                                                     ",
        "                                                                       ",
    }},
    {{
        " ###   ###                  #        #     ###   ###    #   ####   ### ",
        "#   # #   #                #          #   #   # #   #  # #  #   # #   #",
        "#   # #   #   #     #     #   #####    #      # # ### #   # #   # #    ",
        " ###   ####              #              #    #  # # # #   # ####  #    ",
        "#   #     #               #   #####    #    #   # ### ##### #   # #    ",
        "#   #    #    #    ##      #          #         #     #   # #   # #   #",
        " ###   ##           #       #        #      #    ###  #   # ####   ### ",
        "                   #                                                   ",
        "                                                                       ",
    }},
    {{
        "####  ##### #####  ###  #   #  ###      # #   # #     #   # #   #  ### ",
        "#   # #     #     #   # #   #   #       # #  #  #     ## ## #   # #   #",
        "#   # #     #     #     #   #   #       # # #   #     # # # ##  # #   #",
        "#   # ####  ####  # ### #####   #       # ##    #     # # # # # # #   #",
        "#   # #     #     #   # #   #   #       # # #   #     #   # #  ## #   #",
        "#   # #     #     #   # #   #   #   #   # #  #  #     #   # #   # #   #",
        "####  ##### #      ###  #   #  ###   ###  #   # ##### #   # #   #  ### ",
        "                                                                       ",
        "                                                                       ",
    }},
    {{
        "####   ###  ####   ###  ##### #   # #   # #   # #   # #   # #####  ### ",
        "#   # #   # #   # #   #   #   #   # #   # #   # #   # #   #     #  #   ",
        "#   # #   # #   # #       #   #   # #   # #   #  # #  #   #    #   #   ",
        "####  #   # ####   ###    #   #   # #   # # # #   #    # #    #    #   ",
        "#     # # # # #       #   #   #   #  # #  # # #  # #    #    #     #   ",
        "#     #  #  #  #  #   #   #   #   #  # #  # # # #   #   #   #      #   ",
        "#      ## # #   #  ###    #    ###    #    # #  #   #   #   #####  ### ",
        "                                                                       ",
        "                                                                       ",
    }},
    {{
        "#      ###    #          #          #               #         ##       ",
        "#        #   # #          #         #               #        #         ",
        " #       #  #   #              ###  ####   ###   ####  ###  ####   ####",
        "  #      #                        # #   # #   # #   # #   #  #    #   #",
        "   #     #                     #### #   # #     #   # #####  #    #   #",
        "    #    #                    #   # #   # #   # #   # #      #    #   #",
        "    #  ###                     #### ####   ###   ####  ####  #     ####",
        "                  #####                                               #",
        "                                                                   ### ",
    }},
    {{
        "#       #     #   #      #                                             ",
        "#                 #      #                                             ",
        "####    #     #   #  #   #    ## #  ####   ###  ####   #### # ##   ####",
        "#   #   #     #   # #    #    # # # #   # #   # #   # #   # ##    #    ",
        "#   #   #     #   ##     #    # # # #   # #   # #   # #   # #      ### ",
        "#   #   #     #   # #    #    # # # #   # #   # #   # #   # #         #",
        "#   #   #     #   #  #    #   # # # #   #  ###  ####   #### #     #### ",
        "              #                                 #         #            ",
        "            ##                                  #         #            ",
    }},
    {{
        " #                                           #    #    #          #####",
        " #                                          #     #     #         #   #",
        "####  #   # #   # #   # #   # #   # #####   #     #     #    #    #   #",
        " #    #   # #   # # # #  # #  #   #    #   #      #      #  # # # #   #",
        " #    #   # #   # # # #   #   #   #   #     #     #     #      #  #   #",
        " #    #   #  # #  # # #  # #  #   #  #      #     #     #         #   #",
        "  ##   ####   #    # #  #   #  #### #####    #    #    #          #####",
        "                                  #                                    ",
        "                               ###                                     ",
    }},
}};

// The columns of one letter in its sheet, without those that are empty on either side.
struct Letter {
  const Sheet* sheet = nullptr;
  int64_t first = 0;
  int64_t width = 0;

  bool has_ink(int64_t column, int64_t row) const {
    const auto& line = sheet->at(static_cast<size_t>(row));
    return line.at(static_cast<size_t>(first + column)) == '#';
  }

  bool has_ink(int64_t column) const {
    for (int64_t row = 0; row < kTextHeight; ++row) {
      if (has_ink(column, row)) return true;
    }
    return false;
  }
};

Letter letter_of(unsigned char code) {
  const auto index = static_cast<size_t>(code) - kFirst;
  Letter letter{.sheet = &kSheets.at(index / kLettersPerSheet),
                .first = static_cast<int64_t>(index % kLettersPerSheet) * kPitch,
                .width = kPitch - 1};
  if (code == ' ') return {.sheet = letter.sheet, .first = letter.first, .width = kSpaceWidth};
  while (!letter.has_ink(0)) {
    ++letter.first;
    --letter.width;
  }
  while (!letter.has_ink(letter.width - 1)) --letter.width;
  return letter;
}

// Takes the first character off `text`.
Letter next_letter(std::string_view& text) {
  const auto code = static_cast<unsigned char>(text.front());
  text.remove_prefix(1);
  if (code >= kFirst && code < kUnknown) return letter_of(code);
  // The rest of a character of several bytes.
  while (!text.empty() && (static_cast<unsigned char>(text.front()) & 0xc0) == 0x80) {
    text.remove_prefix(1);
  }
  return letter_of(kUnknown);
}

void draw_letter(Picture& picture, int64_t left, int64_t top, const Letter& letter,
                 const TextColour& colour) {
  for (int64_t row = 0; row < kTextHeight; ++row) {
    for (int64_t column = 0; column < letter.width; ++column) {
      const auto x = left + column;
      const auto y = top + row;
      const bool is_inside = x >= 0 && x < picture.width && y >= 0 && y < picture.height;
      if (!is_inside || !letter.has_ink(column, row)) continue;
      const auto at = static_cast<size_t>((y * picture.width + x) * 3);
      picture.rgb.at(at) = colour.red;
      picture.rgb.at(at + 1) = colour.green;
      picture.rgb.at(at + 2) = colour.blue;
    }
  }
}

}  // namespace

int64_t pixel_width(std::string_view text) {
  int64_t width = 0;
  while (!text.empty()) width += next_letter(text).width + 1;
  return std::max<int64_t>(width - 1, 0);
}

std::string shortened_to(std::string_view text, int64_t width) {
  if (pixel_width(text) <= width) return std::string(text);
  constexpr std::string_view kEllipsis = "...";
  size_t kept = 0;
  int64_t used = pixel_width(kEllipsis);
  for (auto rest = text; !rest.empty();) {
    used += next_letter(rest).width + 1;
    if (used > width) break;
    kept = text.size() - rest.size();
  }
  return std::string(text.substr(0, kept)) += kEllipsis;
}

void draw_text(Picture& picture, int64_t left, int64_t top, std::string_view text,
               const TextColour& colour) {
  while (!text.empty()) {
    const auto letter = next_letter(text);
    draw_letter(picture, left, top, letter, colour);
    left += letter.width + 1;
  }
}

namespace {

constexpr int64_t kMosaicChannels = 3;
constexpr int64_t kLargestSide = 96;  // of an image as drawn; labels are not wider either
constexpr int64_t kMargin = 12;
constexpr int64_t kMosaicGap = 12;  // between columns and between rows
constexpr int64_t kLabelGap = 5;
constexpr uint8_t kGround = 244;
constexpr TextColour kInk = {.red = 40, .green = 40, .blue = 48};

Box whole(const Picture& picture) {
  return {.width = static_cast<double>(picture.width),
          .height = static_cast<double>(picture.height)};
}

Picture blank(int64_t width, int64_t height) {
  check(width <= kMostPixels / height, "mosaic: may have up to ", kMostPixels, " pixels, got ",
        width, "x", height);
  return {
      .width = width,
      .height = height,
      .rgb = std::vector<uint8_t>(static_cast<size_t>(width * height * kMosaicChannels), kGround)};
}

Picture enlarged(const Picture& picture, int64_t factor) {
  auto large = blank(picture.width * factor, picture.height * factor);
  auto out = large.rgb.begin();
  for (int64_t y = 0; y < large.height; ++y) {
    for (int64_t x = 0; x < large.width; ++x) {
      const auto at = (y / factor * picture.width + x / factor) * kMosaicChannels;
      out = std::copy_n(picture.rgb.begin() + at, kMosaicChannels, out);
    }
  }
  return large;
}

Picture scaled_down(const Picture& picture, double scale) {
  const auto side = [scale](int64_t length) {
    return std::max<int64_t>(std::llround(static_cast<double>(length) * scale), 1);
  };
  auto small = blank(side(picture.width), side(picture.height));
  resize(picture, whole(picture), small.width, small.height, small.rgb);
  return small;
}

Picture as_drawn(const MosaicImage& image) {
  const auto& picture = image.picture;
  const auto given = static_cast<int64_t>(picture.rgb.size());
  check(picture.width > 0 && picture.height > 0 && picture.width <= kMostPixels / picture.height &&
            picture.width * picture.height * kMosaicChannels == given,
        "mosaic: image '", image.label, "' of ", picture.width, "x", picture.height,
        " must have 3 bytes per pixel, got ", given, " bytes");
  const auto side = std::max(picture.width, picture.height);
  if (side <= kLargestSide) return enlarged(picture, kLargestSide / side);
  return scaled_down(picture, static_cast<double>(kLargestSide) / static_cast<double>(side));
}

void paste(const Picture& picture, int64_t left, int64_t top, Picture& canvas) {
  for (int64_t y = 0; y < picture.height; ++y) {
    std::copy_n(picture.rgb.begin() + y * picture.width * kMosaicChannels,
                picture.width * kMosaicChannels,
                canvas.rgb.begin() + ((top + y) * canvas.width + left) * kMosaicChannels);
  }
}

// What each image gets; all cells are equal.
struct Cell {
  int64_t width = 0;
  int64_t image_height = 0;

  int64_t height() const { return image_height + kLabelGap + kTextHeight; }
};

Cell cell_for(const std::vector<Picture>& pictures, const std::vector<MosaicImage>& images) {
  Cell cell;
  for (const auto& picture : pictures) {
    cell.width = std::max(cell.width, picture.width);
    cell.image_height = std::max(cell.image_height, picture.height);
  }
  for (const auto& image : images) {
    cell.width = std::max(cell.width, std::min(pixel_width(image.label), kLargestSide));
  }
  return cell;
}

// Centred; images stand on their labels.
void draw_cell(const Picture& picture, const std::string& text, const Cell& cell, int64_t left,
               int64_t top, Picture& canvas) {
  paste(picture, left + (cell.width - picture.width) / 2, top + cell.image_height - picture.height,
        canvas);
  const auto label = shortened_to(text, cell.width);
  draw_text(canvas, left + (cell.width - pixel_width(label)) / 2,
            top + cell.image_height + kLabelGap, label, kInk);
}

}  // namespace

Picture picture_of(const RawImages& images, int64_t index) {
  check(index >= 0 && index < images.size(), "mosaic: index must be from 0 to ", images.size() - 1,
        ", got ", index);
  check(images.channels == 1 || images.channels == kMosaicChannels,
        "mosaic: images must have 1 or 3 channels, got ", images.channels);
  check(static_cast<int64_t>(images.pixels.size()) == images.size() * images.image_bytes(),
        "mosaic: ", images.size(), " images must have ", images.image_bytes(), " bytes each, got ",
        images.pixels.size());
  const auto plane = images.height * images.width;
  const auto begin = images.pixels.begin() + index * images.image_bytes();
  Picture picture{.width = images.width, .height = images.height};
  picture.rgb.reserve(static_cast<size_t>(plane * kMosaicChannels));
  for (int64_t at = 0; at < plane; ++at) {
    for (int64_t channel = 0; channel < kMosaicChannels; ++channel) {
      picture.rgb.push_back(begin[std::min(channel, images.channels - 1) * plane + at]);
    }
  }
  return picture;
}

Picture draw_mosaic(const std::vector<MosaicImage>& images, int64_t columns) {
  check(!images.empty(), "mosaic: needs images, got none");
  check(columns >= 1, "mosaic: needs at least one column, got ", columns);
  std::vector<Picture> pictures;
  pictures.reserve(images.size());
  for (const auto& image : images) pictures.push_back(as_drawn(image));
  const auto cell = cell_for(pictures, images);
  const auto count = static_cast<int64_t>(images.size());
  columns = std::min(columns, count);
  const auto rows = (count + columns - 1) / columns;
  auto canvas = blank(2 * kMargin + columns * (cell.width + kMosaicGap) - kMosaicGap,
                      2 * kMargin + rows * (cell.height() + kMosaicGap) - kMosaicGap);
  for (int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<size_t>(i);
    draw_cell(pictures.at(index), images.at(index).label, cell,
              kMargin + i % columns * (cell.width + kMosaicGap),
              kMargin + i / columns * (cell.height() + kMosaicGap), canvas);
  }
  return canvas;
}

}  // namespace kelvin
