#pragma once

#include <cstdint>
#include <string_view>

namespace kelvin {

// The checksum CRC-32C (Castagnoli), which is not the CRC-32 of zip files.  That of a whole can be
// made part by part: `before` is that of what stands before these bytes.  As fast as memory where
// the processor has an instruction for it.
uint32_t crc32c(std::string_view bytes, uint32_t before = 0);

// The same on any processor, some ten times slower.
uint32_t crc32c_by_tables(std::string_view bytes, uint32_t before = 0);

}  // namespace kelvin
