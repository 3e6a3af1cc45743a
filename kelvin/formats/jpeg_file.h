#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kelvin/formats/images.h"

namespace kelvin {

// JPEG with eight bits and Huffman codes: baseline and progressive, grey, YCbCr, RGB, CMYK and
// YCCK.  `where` names the file in messages.  Data that ends too early or cannot be decoded is an
// Error; bytes too many are not.  The orientation that a camera may have noted is not applied.

bool is_jpeg(std::span<const uint8_t> bytes);

// Reads the header alone.
PictureSize jpeg_size(std::span<const uint8_t> bytes, const std::string& where);

// Unscaled, the pixels are those of Pillow's convert("RGB"); CMYK is taken as inverted, as Adobe
// writes it.  With a `largest_shrink` of 2, 4 or 8 and more the sides are so many times smaller,
// rounded up.
Picture decode_jpeg(std::span<const uint8_t> bytes, const std::string& where,
                    double largest_shrink = 1);

}  // namespace kelvin
