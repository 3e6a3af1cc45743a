#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kelvin/formats/byte_reader.h"

namespace kelvin {

constexpr uint32_t kZipLocalHeader = 0x04034b50;
constexpr uint32_t kZipCentralHeader = 0x02014b50;
constexpr uint32_t kZipEnd = 0x06054b50;
constexpr uint16_t kZipStored = 0;
constexpr uint16_t kZipDeflated = 8;

// What a zip's list says about one member.
struct ZipMember {
  std::string_view name = {};
  bool is_encrypted = false;
  uint16_t method = kZipStored;
  uint32_t crc = 0;
  uint64_t packed_size = 0;
  uint64_t size = 0;
  uint64_t header = 0;  // where it begins in the file
};

// The members in the order of the list, zip64 or not.  Together they claim no more bytes than the
// file has, so whoever looks at each once takes no longer than the file is.  `kind` is what the
// file should be, for messages: "an npz file".
std::vector<ZipMember> zip_members(const ByteReader& file, const std::string& kind);

// The bytes of a member as they lie in the file, compressed or not.  `where` is file and member.
std::string_view packed_bytes(const ByteReader& file, const ZipMember& member,
                              const std::string& where);

// An Error unless the unpacked bytes have the checksum of the list.
void check_zip_crc(std::string_view bytes, const ZipMember& member, const std::string& where);

}  // namespace kelvin
