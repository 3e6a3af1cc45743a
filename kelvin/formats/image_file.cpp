#include "kelvin/formats/image_file.h"

#include "kelvin/core/check.h"
#include "kelvin/formats/jpeg_file.h"
#include "kelvin/formats/png_file.h"

namespace kelvin {
namespace {

void check_known(bool is_known, std::span<const uint8_t> bytes, const std::string& where) {
  check(is_known, where, ": must be a JPEG or a PNG, ",
        bytes.empty() ? "is empty" : "its first bytes are of neither");
}

}  // namespace

PictureSize picture_size(std::span<const uint8_t> bytes, const std::string& where) {
  if (is_jpeg(bytes)) return jpeg_size(bytes, where);
  check_known(is_png(bytes), bytes, where);
  return png_size(bytes, where);
}

Picture decode_picture(std::span<const uint8_t> bytes, const std::string& where,
                       double largest_shrink) {
  if (is_jpeg(bytes)) return decode_jpeg(bytes, where, largest_shrink);
  check_known(is_png(bytes), bytes, where);
  return decode_png(bytes, where);
}

}  // namespace kelvin
