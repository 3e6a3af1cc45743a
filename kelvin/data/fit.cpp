#include "kelvin/data/fit.h"

#include <torch/types.h>

#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/formats/images.h"
#include "kelvin/formats/resize.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

// Pillow's weights in sixteenths of a bit.
uint8_t luma(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

Picture picture_at(const uint8_t* planes, const ImageShape& shape) {
  const auto area = shape.height * shape.width;
  Picture picture{.width = shape.width, .height = shape.height};
  picture.rgb.resize(static_cast<size_t>(3 * area));
  for (int64_t pixel = 0; pixel < area; ++pixel) {
    for (int64_t c = 0; c < 3; ++c) {
      const auto plane = shape.channels == 3 ? c : 0;
      picture.rgb[static_cast<size_t>(3 * pixel + c)] = planes[plane * area + pixel];
    }
  }
  return picture;
}

void write_planes(const std::vector<uint8_t>& rgb, const ImageShape& shape, uint8_t* planes) {
  const auto area = shape.height * shape.width;
  for (int64_t pixel = 0; pixel < area; ++pixel) {
    const auto* colour = rgb.data() + 3 * pixel;
    for (int64_t c = 0; c < shape.channels; ++c) {
      planes[c * area + pixel] = shape.channels == 3 ? colour[c] : luma(colour);
    }
  }
}

}  // namespace

Images fit_to(const Images& images, const ImageShape& shape) {
  if (images.size() == 0 || images.shape() == shape) return images;
  const auto bytes = decoded(images);
  const auto from = bytes.shape();
  for (const auto channels : {from.channels, shape.channels}) {
    check(channels == 1 || channels == 3, "fit_to: images must have 1 or 3 channels, got ",
          channels);
  }
  Images fitted{.pixels = torch::empty({bytes.size(), shape.channels, shape.height, shape.width},
                                       torch::kUInt8),
                .labels = bytes.labels};
  const auto* source = bytes.pixels.data_ptr<uint8_t>();
  auto* target = fitted.pixels.data_ptr<uint8_t>();
  parallel_for(0, bytes.size(), /*grain_size=*/64, [&](int64_t begin, int64_t end) {
    std::vector<uint8_t> rgb(static_cast<size_t>(3 * shape.height * shape.width));
    for (int64_t i = begin; i < end; ++i) {
      const auto picture = picture_at(source + i * from.channels * from.height * from.width, from);
      resize(picture,
             {.left = 0,
              .top = 0,
              .width = static_cast<double>(from.width),
              .height = static_cast<double>(from.height)},
             shape.width, shape.height, rgb);
      write_planes(rgb, shape, target + i * shape.channels * shape.height * shape.width);
    }
  });
  return fitted;
}

Images decoded(const Images& images) {
  if (!images.files) return images;
  const auto side = images.files->side();
  const auto bytes = torch::empty({images.size(), side, side, 3}, torch::kUInt8);
  auto* target = bytes.data_ptr<uint8_t>();
  const auto image_bytes = side * side * 3;
  parallel_for(0, images.size(), /*grain_size=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      images.files->decode_middle(i, {target + i * image_bytes, static_cast<size_t>(image_bytes)});
    }
  });
  return {.pixels = bytes.permute({0, 3, 1, 2}).contiguous(), .labels = images.labels};
}

}  // namespace kelvin
