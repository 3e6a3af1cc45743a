#pragma once

#include <cstdint>
#include <string_view>

namespace kelvin {

// The checksum CRC-32C (Castagnoli), which is not the CRC-32 of zip files.
uint32_t crc32c(std::string_view bytes);

}  // namespace kelvin
