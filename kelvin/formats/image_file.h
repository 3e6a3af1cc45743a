#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kelvin/formats/images.h"

namespace kelvin {

// JPEG or PNG, told by the first bytes and not by the name: ImageNet holds a PNG called .JPEG.
// `where` names the file in messages.

// The largest file that is taken for a picture.
constexpr int64_t kMostPictureBytes = int64_t{1} << 28;

// Reads the header alone.
PictureSize picture_size(std::span<const uint8_t> bytes, const std::string& where);

// A JPEG may come out smaller by a factor of up to `largest_shrink` on each side, because its
// decoder can leave out the high frequencies: sides are halved once, twice or three times.  1
// decodes every pixel.  A PNG keeps its size.
Picture decode_picture(std::span<const uint8_t> bytes, const std::string& where,
                       double largest_shrink = 1);

}  // namespace kelvin
