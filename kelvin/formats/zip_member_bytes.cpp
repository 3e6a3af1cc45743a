#include "kelvin/formats/zip_member_bytes.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kelvin/core/check.h"

namespace kelvin {

ZipMemberBytes::ZipMemberBytes(std::string_view packed, const ZipMember& member,
                               const std::string& where)
    : packed_(packed), where_(where), left_(member.size) {
  if (member.method == kZipStored) return;
  // Deflate cannot shrink by more than about 1032 times: a larger claim is a lie.
  check(member.size / 1100 <= packed.size(), where, ": claims ", member.size, " bytes out of ",
        packed.size());
  is_packed_ = inflateInit2(&stream_, -MAX_WBITS) == Z_OK;
  check(is_packed_, where, ": zlib does not start");
}

ZipMemberBytes::~ZipMemberBytes() {
  if (is_packed_) inflateEnd(&stream_);
}

std::string ZipMemberBytes::take(uint64_t length) {
  check(length <= left_, where_, ": cut off: needs ", length, " bytes, has ", left_);
  std::string bytes;
  // Not touched before there is something to put there: what a zip says of itself costs nothing.
  bytes.reserve(length);
  left_ -= length;
  if (is_packed_) {
    inflate_into(bytes, length);
    const auto* const begin = reinterpret_cast<const Bytef*>(bytes.data());
    crc_ = static_cast<uint32_t>(crc32_z(crc_, begin, bytes.size()));
  } else {
    bytes = packed_.substr(read_, length);
    read_ += length;
  }
  return bytes;
}

void ZipMemberBytes::expect_end() {
  if (!is_packed_) return;
  std::array<char, 1> beyond = {};
  const auto count = step(beyond.data(), beyond.size());
  check(count == 0 && result_ == Z_STREAM_END, where_, ": its compressed data is damaged");
}

void ZipMemberBytes::inflate_into(std::string& bytes, uint64_t length) {
  std::vector<char> piece(std::min<uint64_t>(length, size_t{1} << 18));
  while (bytes.size() < length) {
    const auto count = step(piece.data(), std::min<uint64_t>(piece.size(), length - bytes.size()));
    check(count > 0, where_, ": its compressed data is damaged");
    bytes.append(piece.data(), count);
  }
}

uint64_t ZipMemberBytes::step(char* out, uint64_t most) {
  stream_.next_out = reinterpret_cast<Bytef*>(out);
  stream_.avail_out = static_cast<uInt>(most);
  while (stream_.avail_out > 0 && result_ == Z_OK) {
    constexpr uint64_t kPiece = 1U << 30;  // zlib counts in 32 bits
    const auto given = std::min<uint64_t>(packed_.size() - read_, kPiece);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed_.data() + read_));
    stream_.avail_in = static_cast<uInt>(given);
    const auto out_before = stream_.avail_out;
    result_ = inflate(&stream_, Z_NO_FLUSH);
    read_ += given - stream_.avail_in;
    if (given == stream_.avail_in && out_before == stream_.avail_out) break;
  }
  return most - stream_.avail_out;
}

}  // namespace kelvin
