#include "kelvin/data/image_files.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/data/augmentation.h"
#include "kelvin/formats/image_file.h"
#include "kelvin/formats/resize.h"

namespace kelvin {
namespace {

std::span<const uint8_t> bytes_of(const std::string& content) {
  return {reinterpret_cast<const uint8_t*>(content.data()), content.size()};
}

// What torchvision's Resize makes of a picture: the shorter side has `shorter` pixels.
PictureSize resized(const PictureSize& picture, int64_t shorter) {
  const auto least = std::min(picture.width, picture.height);
  return {.width = shorter * picture.width / least, .height = shorter * picture.height / least};
}

// The middle of `side` pixels; halves go to the even neighbour, as in Python's round.
int64_t middle(int64_t length, int64_t side) {
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(length - side) / 2));
}

// The decoder may shrink a picture as long as it keeps what will be resized to fewer pixels.
double largest_shrink(double pixels, int64_t wanted, const ImageFileOptions& options) {
  return options.exact_decoding ? 1 : std::max(1.0, pixels / static_cast<double>(wanted));
}

}  // namespace

ImageFiles::ImageFiles(LabelledFiles files, const ImageFileOptions& options)
    : files_(std::move(files)), options_(options) {
  constexpr int64_t kLargest = 4096;
  check(options.size >= 1 && options.size <= kLargest, "data.image_size: must be from 1 to ",
        kLargest, ", got ", options.size);
  check(options.crop_share >= 0.01 && options.crop_share <= 1,
        "data.crop_share: must be from 0.01 to 1, got ", options.crop_share);
}

void ImageFiles::decode_middle(int64_t index, std::span<uint8_t> rgb) const {
  const auto& path = files_.paths.at(static_cast<size_t>(index));
  const auto content = read_stored_file(path, kMostPictureBytes);
  const auto size = picture_size(bytes_of(content), path.string());
  const auto side = options_.size;
  const auto shorter = static_cast<int64_t>(static_cast<double>(side) / options_.crop_share);
  const auto full = resized(size, shorter);
  const auto shrink =
      largest_shrink(static_cast<double>(std::min(size.width, size.height)), shorter, options_);
  const auto picture = decode_picture(bytes_of(content), path.string(), shrink);
  resize_window(picture, full,
                {.left = middle(full.width, side),
                 .top = middle(full.height, side),
                 .width = side,
                 .height = side},
                rgb);
}

void ImageFiles::decode_random(int64_t index, HashStream& stream, std::span<uint8_t> rgb) const {
  const auto& path = files_.paths.at(static_cast<size_t>(index));
  const auto content = read_stored_file(path, kMostPictureBytes);
  const auto size = picture_size(bytes_of(content), path.string());
  const auto box = draw_box(size, stream);
  const auto shrink = largest_shrink(std::min(box.width, box.height), options_.size, options_);
  const auto picture = decode_picture(bytes_of(content), path.string(), shrink);
  const double scale_x = static_cast<double>(picture.width) / static_cast<double>(size.width);
  const double scale_y = static_cast<double>(picture.height) / static_cast<double>(size.height);
  resize(picture,
         {.left = box.left * scale_x,
          .top = box.top * scale_y,
          .width = box.width * scale_x,
          .height = box.height * scale_y},
         options_.size, options_.size, rgb);
}

}  // namespace kelvin
