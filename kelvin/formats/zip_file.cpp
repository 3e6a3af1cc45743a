#include "kelvin/formats/zip_file.h"

#include <zlib.h>

#include <array>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

constexpr uint32_t kZip64End = 0x06064b50;
constexpr uint32_t kZip64Locator = 0x07064b50;
constexpr size_t kEndBytes = 22;
constexpr size_t kLocatorBytes = 20;
constexpr size_t kCentralBytes = 46;
constexpr size_t kLocalBytes = 30;
constexpr uint16_t kEncrypted = 1;
constexpr uint16_t kZip64Extra = 1;
// What stands in the fields of a zip whose true value a zip64 record holds.
constexpr uint16_t kElsewhere16 = 0xffff;
constexpr uint32_t kElsewhere32 = 0xffffffff;

uint64_t place_of_end(const ByteReader& file, const std::string& kind) {
  check(file.size() >= kEndBytes, file.where(), ": too short for ", kind, ": ", file.size(),
        " bytes");
  const auto last = file.size() - kEndBytes;
  const auto first = last > 0xffff ? last - 0xffff : 0;  // a comment may follow
  for (auto offset = last + 1; offset-- > first;) {
    if (file.number<uint32_t>(offset) != kZipEnd) continue;
    const auto comment = file.number<uint16_t>(offset + kEndBytes - 2);
    check(comment <= last - offset, file.where(), ": is cut off in the comment at its end");
    return offset;
  }
  check(false, file.where(), ": is not ", kind, ", or is cut off");
  return 0;
}

struct CentralList {
  uint64_t members = 0;
  uint64_t offset = 0;
};

CentralList central_list(const ByteReader& file, const std::string& kind) {
  const auto end = place_of_end(file, kind);
  const CentralList list{.members = file.number<uint16_t>(end + 10),
                         .offset = file.number<uint32_t>(end + 16)};
  const bool is_elsewhere = list.members == kElsewhere16 || list.offset == kElsewhere32;
  const bool has_locator =
      end >= kLocatorBytes && file.number<uint32_t>(end - kLocatorBytes) == kZip64Locator;
  if (!is_elsewhere || !has_locator) return list;
  const auto end64 = file.number<uint64_t>(end - kLocatorBytes + 8);
  check(file.number<uint32_t>(end64) == kZip64End, file.where(),
        ": its list of members is damaged");
  return {.members = file.number<uint64_t>(end64 + 32),
          .offset = file.number<uint64_t>(end64 + 48)};
}

// Takes those numbers that are too large for their fields from the zip64 record, which holds
// no others.
void resolve_zip64(ZipMember& member, std::string_view extra, const std::string& where) {
  const ByteReader fields(extra, where);
  for (uint64_t at = 0; at + 4 <= extra.size();) {
    const auto kind = fields.number<uint16_t>(at);
    const auto length = fields.number<uint16_t>(at + 2);
    at += 4;
    if (kind == kZip64Extra) {
      const ByteReader record(fields.part(at, length), where);
      uint64_t used = 0;
      for (auto* number : std::array{&member.size, &member.packed_size, &member.header}) {
        if (*number != kElsewhere32) continue;
        *number = record.number<uint64_t>(used);
        used += sizeof(uint64_t);
      }
      return;
    }
    at += length;
  }
}

}  // namespace

std::vector<ZipMember> zip_members(const ByteReader& file, const std::string& kind) {
  const auto list = central_list(file, kind);
  std::vector<ZipMember> members;
  uint64_t at = list.offset;
  uint64_t claimed = 0;
  for (uint64_t i = 0; i < list.members; ++i) {
    check(file.number<uint32_t>(at) == kZipCentralHeader, file.where(),
          ": its list of members is damaged");
    ZipMember member{.is_encrypted = (file.number<uint16_t>(at + 8) & kEncrypted) != 0,
                     .method = file.number<uint16_t>(at + 10),
                     .crc = file.number<uint32_t>(at + 16),
                     .packed_size = file.number<uint32_t>(at + 20),
                     .size = file.number<uint32_t>(at + 24),
                     .header = file.number<uint32_t>(at + 42)};
    const auto name_length = file.number<uint16_t>(at + 28);
    const auto extra_length = file.number<uint16_t>(at + 30);
    const auto comment_length = file.number<uint16_t>(at + 32);
    member.name = file.part(at + kCentralBytes, name_length);
    resolve_zip64(member, file.part(at + kCentralBytes + name_length, extra_length), file.where());
    at += kCentralBytes + name_length + extra_length + comment_length;
    // Members that share bytes are not made by accident.
    const bool is_too_much = __builtin_add_overflow(claimed, member.packed_size, &claimed);
    check(!is_too_much && claimed <= file.size(), file.where(),
          ": its members claim more bytes than the file has");
    members.push_back(member);
  }
  return members;
}

std::string_view packed_bytes(const ByteReader& file, const ZipMember& member,
                              const std::string& where) {
  check(file.number<uint32_t>(member.header) == kZipLocalHeader, where, ": its header is damaged");
  const auto data = member.header + kLocalBytes + file.number<uint16_t>(member.header + 26) +
                    file.number<uint16_t>(member.header + 28);
  return file.part(data, member.packed_size);
}

void check_zip_crc(std::string_view bytes, const ZipMember& member, const std::string& where) {
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  check(crc == member.crc, where, ": its checksum is wrong");
}

}  // namespace kelvin
