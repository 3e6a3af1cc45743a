#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "kelvin/formats/images.h"

namespace kelvin {

// PNG of every kind.  `where` names the file in messages.  A wrong checksum, data that end too
// early and whatever else libpng warns of is an Error; chunks that say nothing about the pixels are
// passed over.

bool is_png(std::span<const uint8_t> bytes);

// Reads the header alone.
PictureSize png_size(std::span<const uint8_t> bytes, const std::string& where);

// What Pillow's convert("RGB") gives: grey and palettes expanded, transparency dropped.  Of 16 bits
// the upper 8 are kept.
Picture decode_png(std::span<const uint8_t> bytes, const std::string& where);

void write_png(const std::filesystem::path& path, const Picture& picture);

}  // namespace kelvin
