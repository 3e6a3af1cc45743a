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

// The part that remains of a picture whose shorter side becomes `resized` and whose middle
// side x side is kept, in pixels of the picture itself.
Box middle_box(const PictureSize& picture, int64_t resized, int64_t side) {
  const auto shorter = std::min(picture.width, picture.height);
  const auto resized_width = resized * picture.width / shorter;
  const auto resized_height = resized * picture.height / shorter;
  const double scale_x = static_cast<double>(picture.width) / static_cast<double>(resized_width);
  const double scale_y = static_cast<double>(picture.height) / static_cast<double>(resized_height);
  // Halves go to the even neighbour, as in Python's round.
  const double left = std::nearbyint(static_cast<double>(resized_width - side) / 2);
  const double top = std::nearbyint(static_cast<double>(resized_height - side) / 2);
  return {.left = left * scale_x,
          .top = top * scale_y,
          .width = static_cast<double>(side) * scale_x,
          .height = static_cast<double>(side) * scale_y};
}

// The decoder may shrink a picture as long as no side of the box gets fewer pixels than wanted.
double largest_shrink(const Box& box, const ImageFileOptions& options) {
  if (options.exact_decoding) return 1;
  return std::max(1.0, std::min(box.width, box.height) / static_cast<double>(options.size));
}

void decode_box(const std::string& content, const std::string& where, const PictureSize& size,
                const Box& box, const ImageFileOptions& options, std::span<uint8_t> rgb) {
  const auto picture = decode_picture(bytes_of(content), where, largest_shrink(box, options));
  const double scale_x = static_cast<double>(picture.width) / static_cast<double>(size.width);
  const double scale_y = static_cast<double>(picture.height) / static_cast<double>(size.height);
  const Box scaled{.left = box.left * scale_x,
                   .top = box.top * scale_y,
                   .width = box.width * scale_x,
                   .height = box.height * scale_y};
  resize(picture, scaled, options.size, options.size, rgb);
}

}  // namespace

ImageFiles::ImageFiles(LabelledFiles files, const ImageFileOptions& options)
    : files_(std::move(files)), options_(options) {
  constexpr int64_t kLargest = 4096;
  check(options.size >= 1 && options.size <= kLargest, "data.image_size: must be from 1 to ",
        kLargest, ", got ", options.size);
  check(options.crop_share > 0 && options.crop_share <= 1,
        "data.crop_share: must be in (0, 1], got ", options.crop_share);
}

void ImageFiles::decode_middle(int64_t index, std::span<uint8_t> rgb) const {
  const auto& path = files_.paths.at(static_cast<size_t>(index));
  const auto content = read_file(path);
  const auto size = picture_size(bytes_of(content), path.string());
  const auto resized =
      std::max(options_.size,
               static_cast<int64_t>(static_cast<double>(options_.size) / options_.crop_share));
  decode_box(content, path.string(), size, middle_box(size, resized, options_.size), options_, rgb);
}

void ImageFiles::decode_random(int64_t index, HashStream& stream, std::span<uint8_t> rgb) const {
  const auto& path = files_.paths.at(static_cast<size_t>(index));
  const auto content = read_file(path);
  const auto size = picture_size(bytes_of(content), path.string());
  decode_box(content, path.string(), size, draw_box(size, stream), options_, rgb);
}

}  // namespace kelvin
