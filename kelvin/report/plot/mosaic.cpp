#include "kelvin/report/plot/mosaic.h"

#include <algorithm>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/formats/resize.h"
#include "kelvin/report/plot/bitmap_font.h"

namespace kelvin {
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
