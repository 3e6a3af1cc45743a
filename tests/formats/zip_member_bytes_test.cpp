#include "kelvin/formats/zip_member_bytes.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/errors.h"

namespace kelvin::zip_member_bytes_test {

const std::string kWhere = "a.zip: member";

// Raw deflate, as members of a zip have it.
std::string deflated(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_FIXED), Z_OK);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

ZipMember member_of(uint64_t size, bool is_packed) {
  ZipMember member;
  member.method = is_packed ? kZipDeflated : kZipStored;
  member.size = size;
  return member;
}

std::string many_bytes() {
  std::string bytes;
  for (int i = 0; i < 300000; ++i) bytes += static_cast<char>(i * i % 251);
  return bytes;
}

TEST(ZipMemberBytes, AreTakenInOrder) {
  const auto bytes = many_bytes();
  for (const bool is_packed : {false, true}) {
    const auto packed = is_packed ? deflated(bytes) : bytes;
    ZipMemberBytes member(packed, member_of(bytes.size(), is_packed), kWhere);
    EXPECT_EQ(member.take(0), "");
    EXPECT_EQ(member.take(10), bytes.substr(0, 10));
    EXPECT_EQ(member.left(), bytes.size() - 10);
    EXPECT_EQ(member.take(member.left()), bytes.substr(10));
    EXPECT_EQ(member.left(), 0U);
    EXPECT_NO_THROW(member.expect_end());
    EXPECT_EQ(error_of([&] { member.take(1); }), kWhere + ": cut off: needs 1 bytes, has 0");
  }
}

TEST(ZipMemberBytes, HaveTheChecksumOfWhatWasUnpacked) {
  const auto bytes = many_bytes();
  const auto packed = deflated(bytes);
  ZipMemberBytes member(packed, member_of(bytes.size(), true), kWhere);
  member.take(1000);
  member.take(bytes.size() - 1000);
  EXPECT_EQ(member.crc(), crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

TEST(ZipMemberBytes, RefuseSizesThatCannotBe) {
  EXPECT_EQ(error_of([] { ZipMemberBytes("abc", member_of(1 << 30, true), kWhere); }),
            kWhere + ": claims 1073741824 bytes out of 3");
}

TEST(ZipMemberBytes, RefuseDamage) {
  const auto bytes = many_bytes();
  const auto whole = deflated(bytes);
  const auto damage = kWhere + ": its compressed data is damaged";
  for (const auto& packed :
       {whole.substr(0, whole.size() / 2), std::string(whole.size(), '\xff')}) {
    ZipMemberBytes member(packed, member_of(bytes.size(), true), kWhere);
    EXPECT_EQ(error_of([&] { member.take(bytes.size()); }), damage);
  }
  // More than it says.
  ZipMemberBytes longer(whole, member_of(bytes.size() - 1, true), kWhere);
  longer.take(bytes.size() - 1);
  EXPECT_EQ(error_of([&] { longer.expect_end(); }), damage);
}

}  // namespace kelvin::zip_member_bytes_test
