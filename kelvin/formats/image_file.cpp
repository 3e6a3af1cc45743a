#include "kelvin/formats/image_file.h"

#include <algorithm>
#include <string_view>

#include "kelvin/core/check.h"
#include "kelvin/formats/jpeg_file.h"
#include "kelvin/formats/png_file.h"

namespace kelvin {
namespace {

// What the first bytes say of a file that is neither.
std::string other_kind(std::span<const uint8_t> bytes) {
  using namespace std::string_view_literals;
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()),
                              std::min<size_t>(bytes.size(), 16));
  if (head.empty()) return "is empty";
  if (head.starts_with("GIF8")) return "is a GIF";
  if (head.starts_with("RIFF") && head.size() >= 12 && head.substr(8, 4) == "WEBP")
    return "is a WebP";
  if (head.starts_with("BM") && bytes.size() > 26) return "is a BMP";
  if (head.starts_with("II*\0"sv) || head.starts_with("MM\0*"sv)) return "is a TIFF";
  return "its first bytes are of neither";
}

void check_known(bool is_known, std::span<const uint8_t> bytes, const std::string& where) {
  if (!is_known) check(false, where, ": must be a JPEG or a PNG, ", other_kind(bytes));
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
