#include "kelvin/formats/zip_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/python.h"

namespace kelvin::zip_file_test {

// What Python's zipfile writes; `z` is open for writing.
std::string zip_of_python(const std::string& script) {
  const TemporaryFolder folder;
  python_output(
      "import sys, zipfile\n"
      "with zipfile.ZipFile(sys.argv[1], 'w') as z:\n    " +
          script,
      {folder / "a.zip"});
  return read_file(folder / "a.zip");
}

std::string listed(const std::string& zip) {
  const ByteReader file(zip, "a");
  std::string text;
  for (const auto& member : zip_members(file, "a zip")) {
    const auto packed = packed_bytes(file, member, "a: member");
    if (member.method == kZipStored) check_zip_crc(packed, member, "a: member");
    text += std::string(member.name) + " " + std::to_string(member.size) + " " +
            (member.method == kZipStored ? std::string(packed) : "packed") + "\n";
  }
  return text;
}

std::string refusal_of(const std::string& zip) {
  return error_of([&] { listed(zip); });
}

template <class Number>
void put_at(std::string& bytes, size_t offset, Number number) {
  std::memcpy(bytes.data() + offset, &number, sizeof(Number));
}

template <class Number>
void put(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(Number));
}

TEST(ZipMembers, AreThoseOfPythonsZips) {
  EXPECT_EQ(listed(zip_of_python("z.writestr('b/c', 'text'); z.writestr('a', '');"
                                 "z.writestr('d', 'x' * 99, zipfile.ZIP_DEFLATED);"
                                 "z.comment = b'PK and more'")),
            "b/c 4 text\na 0 \nd 99 packed\n");
  EXPECT_EQ(listed(zip_of_python("pass")), "");
}

TEST(ZipMembers, SayWhetherTheyAreEncrypted) {
  auto zip = zip_of_python("z.writestr('a', 'text')");
  EXPECT_FALSE(zip_members(ByteReader(zip, "a"), "a zip").at(0).is_encrypted);
  put_at<uint16_t>(zip, zip.find("PK\x01\x02") + 8, 1);
  EXPECT_TRUE(zip_members(ByteReader(zip, "a"), "a zip").at(0).is_encrypted);
}

// A zip of one member whose numbers all lie in zip64 records: how many members it claims, and where
// the first of them begins.
std::string zip64(uint64_t members, uint64_t header) {
  const auto plain = zip_of_python("z.writestr('a', 'text')");
  const auto central = plain.find("PK\x01\x02");
  const auto end = plain.find("PK\x05\x06");
  std::string extra;
  put<uint32_t>(extra, 0x00027777);  // another field before it
  put<uint16_t>(extra, 0);
  put<uint32_t>(extra, 0x00180001);
  put<uint64_t>(extra, 4);
  put<uint64_t>(extra, 4);
  put<uint64_t>(extra, header);
  auto list = plain.substr(central, end - central);
  put_at<uint32_t>(list, 20, 0xffffffff);
  put_at<uint32_t>(list, 24, 0xffffffff);
  put_at<uint16_t>(list, 30, static_cast<uint16_t>(extra.size()));
  put_at<uint32_t>(list, 42, 0xffffffff);
  auto zip = plain.substr(0, central) + list + extra;
  const auto end64 = zip.size();
  zip += "PK\x06\x06";
  zip += std::string(28, '\0');
  put<uint64_t>(zip, members);
  put<uint64_t>(zip, list.size() + extra.size());
  put<uint64_t>(zip, central);
  zip += "PK\x06\x07" + std::string(4, '\0');
  put<uint64_t>(zip, end64);
  put<uint32_t>(zip, 1);
  auto tail = plain.substr(end);
  put_at<uint16_t>(tail, 10, 0xffff);
  put_at<uint32_t>(tail, 16, 0xffffffff);
  return zip + tail;
}

TEST(ZipMembers, MayHaveTheirNumbersInZip64Records) {
  EXPECT_EQ(listed(zip64(1, 0)), "a 4 text\n");
  EXPECT_EQ(listed(zip_of_python("z.open('a', 'w', force_zip64=True).close()")), "a 0 \n");
}

TEST(ZipMembers, AreRefusedIfZip64RecordsLie) {
  EXPECT_EQ(refusal_of(zip64(~uint64_t{0}, 0)), "a: its list of members is damaged");
  const auto zip = zip64(1, ~uint64_t{0});
  EXPECT_EQ(refusal_of(zip), "a: cut off: needs 4 bytes at 18446744073709551615, the file has " +
                                 std::to_string(zip.size()));
  auto damaged = zip64(1, 0);
  damaged.at(damaged.find("PK\x06\x06")) = 'X';
  EXPECT_EQ(refusal_of(damaged), "a: its list of members is damaged");
}

TEST(ZipMembers, ClaimNoMoreThanTheFileHas) {
  auto zip = zip_of_python("z.writestr('a', 'x' * 300); z.writestr('b', 'y' * 300)");
  put_at<uint32_t>(zip, zip.rfind("PK\x01\x02") + 20, 1000);
  EXPECT_EQ(refusal_of(zip), "a: its members claim more bytes than the file has");
}

TEST(ZipMembers, AreRefusedIfDamaged) {
  const auto zip = zip_of_python("z.writestr('a', 'text')");
  auto damaged = zip;
  damaged.at(0) = 'X';
  EXPECT_EQ(refusal_of(damaged), "a: member: its header is damaged");
  damaged = zip;
  damaged.at(zip.find("text")) = 'T';
  EXPECT_EQ(refusal_of(damaged), "a: member: its checksum is wrong");
  damaged = zip;
  damaged.at(zip.find("PK\x01\x02")) = 'X';
  EXPECT_EQ(refusal_of(damaged), "a: its list of members is damaged");
  EXPECT_EQ(refusal_of("hello"), "a: too short for a zip: 5 bytes");
  EXPECT_EQ(refusal_of(std::string(100, 'x')), "a: is not a zip, or is cut off");
}

TEST(ZipMembers, CutOffAnywhereAreAnError) {
  for (const auto& zip : {zip64(1, 0), zip_of_python("z.writestr('a', 'text')")}) {
    for (size_t length = 0; length < zip.size(); ++length) {
      EXPECT_THROW(listed(zip.substr(0, length)), Error) << length;
    }
  }
}

}  // namespace kelvin::zip_file_test
