#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/support/npz.h"

namespace kelvin::damaged_npz_test {

// Reading ends with arrays or with an Error, and never in any other way.
void expect_no_crash(const std::filesystem::path& path) {
  try {
    for (const auto& [name, array] : read_npz(path)) {
      const auto element = array.dtype == "bf16" ? 2 : static_cast<size_t>(array.dtype.at(1) - '0');
      EXPECT_EQ(array.bytes.size(), static_cast<size_t>(array.size()) * element);
    }
  } catch (const Error&) {
  }
}

// A stored archive of ours and a deflated one of NumPy, both small.
std::vector<std::string> small_archives() {
  return {written({{"x", array_of<double>("f8", {2}, {0.1, 2})},
                   {"y", array_of<uint8_t>("u1", {}, {3})}}),
          saved_by_numpy("savez_compressed", "x=np.arange(9)")};
}

TEST(ReadNpz, RefusesAFileCutOffAtAnyByte) {
  const TemporaryFolder folder;
  for (const auto& bytes : small_archives()) {
    write_file_atomically(folder / "a.npz", bytes);
    for (size_t length = bytes.size(); length-- > 0;) {
      std::filesystem::resize_file(folder / "a.npz", length);
      EXPECT_THROW(read_npz(folder / "a.npz"), Error) << "cut to " << length;
    }
  }
}

// Writes over a file of the same size: to make it anew would wait for the disk each time.
void overwrite(const std::string& path, const std::string& bytes) {
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out) << bytes;
}

TEST(ReadNpz, SurvivesAnyDamagedByte) {
  const TemporaryFolder folder;
  std::mt19937 random(1);
  for (const auto& bytes : small_archives()) {
    write_file_atomically(folder / "a.npz", bytes);
    for (int trial = 0; trial < 2000; ++trial) {
      auto damaged = bytes;
      damaged[random() % damaged.size()] = static_cast<char>(random());
      overwrite(folder / "a.npz", damaged);
      expect_no_crash(folder / "a.npz");
    }
  }
}

// With the checksum made to fit, so that the damage reaches the npy header.
TEST(ReadNpz, SurvivesDamagedArraysWithAValidChecksum) {
  const TemporaryFolder folder;
  std::mt19937 random(2);
  const auto npy = npy_of(header_of("<f4", "2, 3"), std::string(24, 'x'));
  write_file_atomically(folder / "a.npz", Zip{.content = npy}.bytes());
  for (int trial = 0; trial < 3000; ++trial) {
    auto damaged = npy;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    overwrite(folder / "a.npz", Zip{.content = damaged}.bytes());
    expect_no_crash(folder / "a.npz");
  }
}

TEST(ReadNpz, RefusesCutOffArraysWithAValidChecksum) {
  const auto npy = npy_of(header_of("<f4", "2, 3"), std::string(24, 'x'));
  for (size_t length = 0; length < npy.size(); ++length) {
    EXPECT_NE(refusal_of_npy(npy.substr(0, length)), "");
  }
}

TEST(ReadNpz, RefusesWhatIsNoZip) {
  EXPECT_EQ(refusal_of("hello"), "too short for an npz file: 5 bytes");
  EXPECT_EQ(refusal_of(std::string(100000, 'x')), "is not an npz file, or is cut off");
}

TEST(ReadNpz, RefusesDamagedZipHeaders) {
  const auto bytes = Zip{.content = npy_of(header_of("|u1", ""), "a")}.bytes();
  const auto central = bytes.rfind("PK\x01\x02");
  auto damaged = bytes;
  damaged[central] = 'X';
  EXPECT_EQ(refusal_of(damaged), "its list of members is damaged");
  damaged = bytes;
  damaged[0] = 'X';
  EXPECT_EQ(refusal_of(damaged), "'x.npy': its header is damaged");
  damaged = bytes;
  put_at<uint16_t>(damaged, bytes.size() - 12, 0xffff);
  EXPECT_EQ(refusal_of(damaged), "its list of members is damaged");
  damaged = bytes;
  put_at<uint32_t>(damaged, bytes.size() - 6, 0xfffffffe);
  EXPECT_EQ(refusal_of(damaged),
            "cut off: needs 4 bytes at 4294967294, the file has " + std::to_string(bytes.size()));
}

TEST(ReadNpz, RefusesADamagedMember) {
  const auto npy = npy_of(header_of("|u1", ""), "a");
  auto damaged = Zip{.content = npy}.bytes();
  damaged[damaged.find("False")] = 'f';
  EXPECT_EQ(refusal_of(damaged), "'x.npy': its checksum is wrong");
  EXPECT_EQ(refusal_of(Zip{.content = npy, .method = 8}.bytes()),
            "'x.npy': its compressed data is damaged");
  EXPECT_EQ(refusal_of(Zip{.content = npy, .method = 12}.bytes()),
            "'x.npy': must be stored or deflated, has zip method 12");
  EXPECT_EQ(refusal_of(Zip{.content = npy, .size = 5}.bytes()), "'x.npy': its sizes disagree");
}

TEST(ReadNpz, RefusesAbsurdSizesBeforeItReservesThem) {
  const auto npy = npy_of(header_of("|u1", ""), "a");
  EXPECT_EQ(refusal_of(Zip{.content = npy, .method = 8, .size = 0xfffffff0}.bytes()),
            "'x.npy': claims 4294967280 bytes out of " + std::to_string(npy.size()));
  EXPECT_EQ(refusal_of(Zip{.content = npy, .size = 0xffffffff}.bytes()),
            "'x.npy': members of 4 GiB and more are not supported");
  EXPECT_EQ(refusal_of_shape("9999999999999999999"), "'x.npy': npy shape is too large");
  EXPECT_EQ(refusal_of_shape("999999999999, 999999999999"), "'x.npy': npy shape is too large");
  EXPECT_EQ(refusal_of_shape("999999999999, 999999999999, 0"), "'x.npy': npy shape is too large");
  EXPECT_EQ(refusal_of_shape("1000000000"), "'x.npy': shape needs 4000000000 bytes of data, has 0");
}

TEST(ReadNpz, RefusesMalformedShapes) {
  for (const std::string shape : {",", "1,,2", "-1", "1 2", "2.5", "x"}) {
    EXPECT_EQ(refusal_of_shape(shape), "'x.npy': npy shape is malformed: (" + shape + ")");
  }
}

TEST(ReadNpz, RefusesArraysItCannotHold) {
  EXPECT_EQ(refusal_of_npy("this is no array"), "'x.npy': is not an npy array");
  EXPECT_EQ(refusal_of_npy(npy_of(header_of("<f4", "1,", "true"), "1234")),
            "'x.npy': npy header must say True or False of fortran_order, says 'true'");
  EXPECT_EQ(refusal_of_npy(npy_of(header_of("|O", "1,"), "1234")),
            "'x.npy': dtype must be one of " + kDtypes + ", got 'O'");
  EXPECT_EQ(refusal_of_npy(npy_of(header_of("<c8", "1,"), "12345678")),
            "'x.npy': dtype must be one of " + kDtypes + ", got 'c8'");
  EXPECT_EQ(refusal_of_npy(npy_of(header_of("|b1", "1,"), "\x02")),
            "'x.npy': booleans must be 0 or 1");
  EXPECT_EQ(refusal_of(saved_by_numpy("savez", "x=np.zeros(2, [('a', 'f4'), ('b', 'i4')])")),
            "'x.npy': npy header has no 'descr': '...', the name of one type of number");
  EXPECT_EQ(refusal_of_shape(std::string(200, '1') + ","), "'x.npy': npy shape is too large");
  std::string many;
  for (int i = 0; i < 65; ++i) many += "1, ";
  EXPECT_EQ(refusal_of_shape(many), "'x.npy': npy shape must have at most 64 axes, has 65");
  EXPECT_EQ(refusal_of_npy(npy_of(header_of("<f4", "2,"), "1234")),
            "'x.npy': shape needs 8 bytes of data, has 4");
  EXPECT_EQ(refusal_of_npy(npy_of(header_of("<f4", "1,"), "12345678")),
            "'x.npy': shape needs 4 bytes of data, has 8");
  EXPECT_EQ(refusal_of_npy(npy_of("{}", "")),
            "'x.npy': npy header has no 'descr': '...', the name of one type of number");
  EXPECT_EQ(refusal_of_npy(npy_of("{'descr': '<f4", "")), "'x.npy': npy header is cut off");
}

// Of a deflated member, what follows the header is damaged: whoever had unpacked it would say so.
TEST(ReadNpz, RefusesAMemberThatDoesNotFitItsHeaderBeforeItIsUnpacked) {
  const TemporaryFolder folder;
  python_output(R"(
import sys, zipfile, zlib, numpy as np, io
def npz(path, shape, count, size=None):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {'descr': '<f4', 'fortran_order': False, 'shape': shape})
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as z:
        with z.open('x.npy', 'w') as member:
            member.write(header.getvalue())
            for _ in range(count): member.write(bytes(1 << 20))
    content = bytearray(open(path, 'rb').read())
    content[2000:2100] = b'x' * 100
    open(path, 'wb').write(content)
npz(sys.argv[1] + '/small.npz', (10,), 64)
npz(sys.argv[1] + '/large.npz', (1 << 30,), 64)
npz(sys.argv[1] + '/honest.npz', (1 << 24,), 64)
)",
                {folder.path().string()});
  const auto refusal = [&](const std::string& name) {
    return error_of([&] { read_npz(folder / name); }).substr((folder / name).size() + 2);
  };
  EXPECT_EQ(refusal("small.npz"), "'x.npy': shape needs 40 bytes of data, has 67108864");
  EXPECT_EQ(refusal("large.npz"), "'x.npy': shape needs 4294967296 bytes of data, has 67108864");
  EXPECT_EQ(refusal("honest.npz"), "'x.npy': its compressed data is damaged");
}

TEST(ReadNpz, RefusesAnArrayThatIsThereTwice) {
  const TemporaryFolder folder;
  python_output(
      "import sys, io, zipfile, numpy as np\n"
      "data = io.BytesIO(); np.save(data, np.zeros(3))\n"
      "with zipfile.ZipFile(sys.argv[1], 'w') as z:\n"
      "    z.writestr('a.npy', data.getvalue()); z.writestr('a', data.getvalue())\n",
      {folder / "x.npz"});
  const auto message = error_of([&] { read_npz(folder / "x.npz"); });
  EXPECT_TRUE(message.ends_with(": is there twice")) << message;
}

}  // namespace kelvin::damaged_npz_test
