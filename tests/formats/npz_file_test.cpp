#include "kelvin/formats/npz_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/python.h"

namespace kelvin::npz_file_test {

template <class Number>
Array array_of(const std::string& dtype, const std::vector<int64_t>& shape,
               const std::vector<Number>& numbers) {
  std::string bytes(numbers.size() * sizeof(Number), '\0');
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return {.dtype = dtype, .shape = shape, .bytes = bytes};
}

template <class Number>
std::vector<Number> numbers_of(const Array& array) {
  std::vector<Number> numbers(array.bytes.size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), array.bytes.data(), array.bytes.size());
  return numbers;
}

const std::string kDtypes = "f2, f4, f8, i1, i2, i4, i8, u1, u2, u4, u8, b1, or V2 for bfloat16";

// Several dtypes, and shapes from a scalar to an empty matrix.
Arrays samples() {
  return {{"logits", array_of<float>("f4", {2, 3}, {1, 2, 3, 4, 5, -0.5F})},
          {"labels", array_of<int64_t>("i8", {2}, {7, -1})},
          {"small", array_of<int32_t>("i4", {1, 1, 2}, {-5, 6})},
          {"pixels", array_of<uint8_t>("u1", {3}, {0, 128, 255})},
          {"temperature", array_of<double>("f8", {}, {0.1})},
          {"empty", array_of<float>("f4", {0, 4}, {})}};
}

void expect_equal(const Arrays& actual, const Arrays& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, array] : expected) {
    ASSERT_TRUE(actual.contains(name)) << name;
    EXPECT_EQ(actual.at(name).dtype, array.dtype) << name;
    EXPECT_EQ(actual.at(name).shape, array.shape) << name;
    EXPECT_EQ(actual.at(name).bytes, array.bytes) << name;
  }
}

template <class Number>
void put(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(Number));
}

template <class Number>
void put_at(std::string& bytes, size_t offset, Number number) {
  std::memcpy(bytes.data() + offset, &number, sizeof(Number));
}

uint32_t crc_of(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const char letter : bytes) {
    crc ^= static_cast<unsigned char>(letter);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  return ~crc;
}

// A zip with one member, made by hand so that a test can put a lie into any field.
struct Zip {
  std::string content;
  uint16_t method = 0;
  std::optional<uint32_t> size = {};  // what it claims, if not the truth
  std::string name = "x.npy";

  std::string bytes() const {
    std::string member;  // what local and central headers have in common
    put<uint16_t>(member, 20);
    put<uint16_t>(member, 0);
    put<uint16_t>(member, method);
    put<uint32_t>(member, 0);
    put<uint32_t>(member, crc_of(content));
    put<uint32_t>(member, static_cast<uint32_t>(content.size()));
    put<uint32_t>(member, size.value_or(static_cast<uint32_t>(content.size())));
    put<uint16_t>(member, static_cast<uint16_t>(name.size()));
    put<uint16_t>(member, 0);
    std::string file = "PK\x03\x04" + member + name + content;
    const auto central = file.size();
    file += "PK\x01\x02";
    put<uint16_t>(file, 20);
    file += member + std::string(14, '\0') + name;  // the local header lies at 0
    const auto central_size = file.size() - central;
    file += "PK\x05\x06" + std::string(4, '\0');
    put<uint16_t>(file, 1);
    put<uint16_t>(file, 1);
    put<uint32_t>(file, static_cast<uint32_t>(central_size));
    put<uint32_t>(file, static_cast<uint32_t>(central));
    put<uint16_t>(file, 0);
    return file;
  }
};

std::string npy_of(const std::string& header, const std::string& data) {
  std::string npy = "\x93NUMPY\x01";
  npy += '\0';
  put<uint16_t>(npy, static_cast<uint16_t>(header.size()));
  return npy + header + data;
}

std::string header_of(const std::string& dtype, const std::string& shape,
                      const std::string& fortran_order = "False") {
  return "{'descr': '" + dtype + "', 'fortran_order': " + fortran_order + ", 'shape': (" + shape +
         "), }\n";
}

Arrays read_bytes(const std::string& bytes) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.npz", bytes);
  return read_npz(folder / "a.npz");
}

// Why the file is refused, without its path.
std::string refusal_of(const std::string& bytes) {
  const auto message = error_of([&] { read_bytes(bytes); });
  const auto path = message.find("a.npz: ");
  EXPECT_NE(path, std::string::npos) << message;
  return path == std::string::npos ? message : message.substr(path + 7);
}

std::string refusal_of_npy(const std::string& npy) {
  return refusal_of(Zip{.content = npy}.bytes());
}

std::string refusal_of_shape(const std::string& shape) {
  return refusal_of_npy(npy_of(header_of("<f4", shape), ""));
}

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

std::string written(const Arrays& arrays) {
  const TemporaryFolder folder;
  write_npz(folder / "a.npz", arrays);
  return read_file(folder / "a.npz");
}

// `function` is savez or savez_compressed, `arguments` what it saves.
std::string saved_by_numpy(const std::string& function, const std::string& arguments) {
  const TemporaryFolder folder;
  python_output("import sys, numpy as np\nnp." + function + "(sys.argv[1], " + arguments + ")",
                {folder / "a.npz"});
  return read_file(folder / "a.npz");
}

// The same as samples().
constexpr auto kSamplesInPython =
    "logits=np.array([[1, 2, 3], [4, 5, -0.5]], 'f4'), labels=np.array([7, -1]),"
    "small=np.array([[[-5, 6]]], 'i4'), pixels=np.array([0, 128, 255], 'u1'),"
    "temperature=np.float64(0.1), empty=np.zeros((0, 4), 'f4')";

// A stored archive of ours and a deflated one of NumPy, both small.
std::vector<std::string> small_archives() {
  return {written({{"x", array_of<double>("f8", {2}, {0.1, 2})},
                   {"y", array_of<uint8_t>("u1", {}, {3})}}),
          saved_by_numpy("savez_compressed", "x=np.arange(9)")};
}

TEST(ReadNpz, GivesBackWhatWasWritten) { expect_equal(read_bytes(written(samples())), samples()); }

TEST(ReadNpz, ReadsWhatNumpySaves) {
  expect_equal(read_bytes(saved_by_numpy("savez", kSamplesInPython)), samples());
}

TEST(ReadNpz, ReadsWhatNumpyCompresses) {
  expect_equal(read_bytes(saved_by_numpy("savez_compressed", kSamplesInPython)), samples());
}

TEST(ReadNpz, ReadsALargeCompressedArrayOfNumpy) {
  const auto arrays = read_bytes(saved_by_numpy("savez_compressed", "x=np.arange(300000)"));
  const auto numbers = numbers_of<int64_t>(arrays.at("x"));
  ASSERT_EQ(numbers.size(), 300000U);
  for (size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], static_cast<int64_t>(i));
}

TEST(ReadNpz, ReadsAnEmptyArchive) { EXPECT_TRUE(read_bytes(written({})).empty()); }

TEST(ReadNpz, ReadsPastACommentAtTheEnd) {
  auto bytes = written(samples());
  EXPECT_TRUE(bytes.ends_with("kelvin")) << "by which it is known again";
  bytes.resize(bytes.size() - 6);
  put_at<uint16_t>(bytes, bytes.size() - 2, 5);
  expect_equal(read_bytes(bytes + "hello"), samples());
}

TEST(ReadNpz, ReadsTheLongHeadersOfNpyVersion2) {
  const auto header = header_of("|u1", "2,");
  std::string npy = "\x93NUMPY\x02";
  npy += '\0';
  put<uint32_t>(npy, static_cast<uint32_t>(header.size()));
  EXPECT_EQ(read_bytes(Zip{.content = npy + header + "ab"}.bytes()).at("x").bytes, "ab");
}

TEST(ReadNpz, KeepsNamesWithoutTheExtensionAndWithTheirFolders) {
  const auto npy = npy_of(header_of("|u1", ""), "a");
  EXPECT_TRUE(read_bytes(Zip{.content = npy, .name = "layer/3.npy"}.bytes()).contains("layer/3"));
  EXPECT_TRUE(read_bytes(Zip{.content = npy, .name = "bare"}.bytes()).contains("bare"));
}

TEST(WriteNpz, WritesWhatNumpyReads) {
  const TemporaryFolder folder;
  write_npz(folder / "a.npz", samples());
  EXPECT_EQ(python_output("import sys, numpy as np\n"
                          "file = np.load(sys.argv[1])\n"
                          "for name in sorted(file): print(name, file[name].dtype.str,\n"
                          "    file[name].shape, file[name].ravel().tolist())",
                          {folder / "a.npz"}),
            "empty <f4 (0, 4) []\n"
            "labels <i8 (2,) [7, -1]\n"
            "logits <f4 (2, 3) [1.0, 2.0, 3.0, 4.0, 5.0, -0.5]\n"
            "pixels |u1 (3,) [0, 128, 255]\n"
            "small <i4 (1, 1, 2) [-5, 6]\n"
            "temperature <f8 () [0.1]\n");
}

TEST(WriteNpz, GivesTheSameBytesForTheSameArrays) {
  EXPECT_EQ(written(samples()), written(samples()));
}

TEST(WriteNpz, AlignsTheDataAsNumpyDoes) {
  const auto bytes = written({{"x", array_of<double>("f8", {1}, {1})}});
  const auto start = bytes.find("\x93NUMPY");
  uint16_t length = 0;
  std::memcpy(&length, bytes.data() + start + 8, 2);
  EXPECT_EQ((10 + length) % 64, 0);
}

TEST(WriteNpz, RejectsABufferThatDoesNotFitTheShape) {
  auto array = array_of<float>("f4", {2}, {1, 2});
  array.shape = {3};
  const auto message = error_of([&] { write_npz("a.npz", {{"x", array}}); });
  EXPECT_EQ(message, "a.npz: 'x': shape needs 12 bytes, got 8");
}

TEST(WriteNpz, RejectsOtherDtypes) {
  const Array array{.dtype = "c8", .shape = {1}, .bytes = "12345678"};
  EXPECT_EQ(error_of([&] {
              write_npz("a.npz", {{"x", array}});
            }),
            "a.npz: 'x': dtype must be one of " + kDtypes + ", got 'c8'");
}

TEST(Array, HasTheProductOfItsShapeAsSize) {
  EXPECT_EQ(samples().at("logits").size(), 6);
  EXPECT_EQ(samples().at("temperature").size(), 1);
  EXPECT_EQ(samples().at("empty").size(), 0);
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

TEST(ReadNpz, NamesAFileThatIsNotThere) {
  EXPECT_EQ(error_of([] { read_npz("/no/such.npz"); }),
            "/no/such.npz: cannot read: No such file or directory");
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

// Arrays as NumPy saves them, and beside them as ours are: in C order and little-endian.
void expect_same_as_plain(const std::string& function, size_t count) {
  const TemporaryFolder folder;
  python_output("function = '" + function + "'" + R"(
import sys, numpy as np
strange, plain = {}, {}
def add(name, x):
    strange[name] = x
    plain[name] = np.ascontiguousarray(x).astype(x.dtype.newbyteorder('<')).reshape(x.shape)
random = np.random.default_rng(1)
for t in ['f2', 'f4', 'f8', 'i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'b1']:
    for byte_order in '<>':
        dtype = np.dtype(byte_order + t)
        if t[0] == 'f':
            x = random.normal(size=(3, 4, 5)).astype(dtype)
        elif t == 'b1':
            x = random.integers(0, 2, (3, 4, 5)).astype(dtype)
        else:
            limits = np.iinfo(t)
            x = random.integers(limits.min, limits.max, (3, 4, 5), t, endpoint=True).astype(dtype)
            x.flat[:2] = [limits.min, limits.max]
        for name, shaped in [('whole', x), ('matrix', x[0]), ('row', x[0, 0]), ('number', x[1, 2, 3]),
                             ('none', x[:, :0]), ('column', x[:, 1:2, 0])]:
            add(f'{t} {byte_order} {name}', np.array(shaped))
            add(f'{t} {byte_order} {name} fortran', np.array(shaped, order='F'))
getattr(np, function)(sys.argv[1], **strange)
np.savez(sys.argv[2], **plain)
)",
                {folder / "strange.npz", folder / "plain.npz"});
  const auto strange = read_npz(folder / "strange.npz");
  EXPECT_EQ(strange.size(), count);
  expect_equal(strange, read_npz(folder / "plain.npz"));
}

TEST(ReadNpz, ReadsEveryOrderOfAxesAndBytesOfNumpyExactly) {
  expect_same_as_plain("savez", 12 * 2 * 6 * 2);
  expect_same_as_plain("savez_compressed", 12 * 2 * 6 * 2);
}

// What ml_dtypes has as its code is void of two bytes, and NumPy writes that.
TEST(ReadNpz, TakesTwoBytesOfNoTypeForBfloat16) {
  const auto array =
      read_bytes(
          saved_by_numpy("savez", "x=np.array([1, -2.5, 3], '<f4').view('<u2')[1::2].view('V2')"))
          .at("x");
  EXPECT_EQ(array.dtype, "bf16");
  EXPECT_EQ(array.shape, (std::vector<int64_t>{3}));
  EXPECT_EQ(numbers_of<uint16_t>(array), (std::vector<uint16_t>{0x3f80, 0xc020, 0x4040}));
  for (const char* descr : {"<V2", "|V2", "bfloat16"}) {
    const auto npy = npy_of(header_of(descr, "1,"), "\x80\x3f");
    EXPECT_EQ(read_bytes(Zip{.content = npy}.bytes()).at("x").dtype, "bf16") << descr;
  }
  EXPECT_EQ(read_bytes(written({{"x", array}})).at("x").bytes, array.bytes);
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

TEST(ReadNpz, ReadsOfALargeFileOnlyWhatIsWanted) {
  const TemporaryFolder folder;
  python_output(
      "import sys, numpy as np\nnp.savez(sys.argv[1], a=np.arange(3), z=np.zeros(1 << 20),"
      " b=np.arange(5))",
      {folder / "a.npz"});
  // The large one is not even looked at.
  auto bytes = read_file(folder / "a.npz");
  for (size_t i = bytes.size() / 4; i < bytes.size() / 2; ++i) bytes[i] = 'x';
  write_file_atomically(folder / "a.npz", bytes);
  const auto arrays = read_npz(folder / "a.npz", {"a", "b"});
  EXPECT_EQ(numbers_of<int64_t>(arrays.at("a")), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(numbers_of<int64_t>(arrays.at("b")), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_NE(error_of([&] { read_npz(folder / "a.npz"); }).find("'z.npy': its checksum is wrong"),
            std::string::npos);
}

// The checksum is what would be wrong after unpacking.
TEST(ReadNpz, ShowsHeadersBeforeItUnpacks) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "x.npy", npy_of(header_of("<f4", "2, 3"), std::string(24, 'x')));
  python_output(R"(
import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + '/a.npz', 'w', zipfile.ZIP_DEFLATED) as file:
    file.write(sys.argv[1] + '/x.npy', 'x.npy')
    file.getinfo('x.npy').CRC ^= 1
)",
                {folder.path().string()});
  const auto every = [](const std::string&) { return true; };
  EXPECT_EQ(error_of([&] { read_npz(folder / "a.npz", every); }),
            (folder / "a.npz") + ": 'x.npy': its checksum is wrong");
  const auto refuse = [](const std::string& name, const Array& header) {
    EXPECT_EQ(name, "x");
    EXPECT_EQ(header.dtype, "f4");
    EXPECT_EQ(header.shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(header.bytes, "");
    check(false, "too large");
  };
  EXPECT_EQ(error_of([&] { read_npz(folder / "a.npz", every, refuse); }), "too large");
}

// Python 2 wrote whole numbers of its long type so.
TEST(ReadNpz, TakesShapesOfPython2) {
  const std::string data(24, '\0');
  for (const auto* shape : {"2L, 3L", "2L,3L,", "2, 3L", "2L , 3L "}) {
    const auto arrays = read_bytes(Zip{.content = npy_of(header_of("<f4", shape), data)}.bytes());
    EXPECT_EQ(arrays.at("x").shape, (std::vector<int64_t>{2, 3})) << shape;
  }
  for (const auto* shape : {"L", "2LL, 3", "2L3", "2 L, 3", "2, L3"}) {
    EXPECT_EQ(refusal_of_shape(shape),
              "'x.npy': npy shape is malformed: (" + std::string(shape) + ")");
  }
}

TEST(ReadNpz, IsOfAFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { read_npz(folder.path()); }),
            folder.path().string() + ": is a folder, must be a file");
  EXPECT_EQ(error_of([] { read_npz("/dev/zero"); }),
            "/dev/zero: must be a file, is a device or a pipe");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { read_npz(folder / "pipe"); }),
            (folder / "pipe") + ": must be a file, is a device or a pipe");
}

TEST(ReadNpz, LooksAtWantedMembersOnly) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.npz";
  python_output(
      "import sys, numpy as np; np.savez(sys.argv[1], names=np.array(['a']), x=np.ones(2))",
      {path.string()});
  EXPECT_NE(error_of([&] { read_npz(path); }).find("dtype must be one of"), std::string::npos);
  const auto arrays = read_npz(path, {"x", "absent"});
  ASSERT_EQ(arrays.size(), 1U);
  EXPECT_EQ(arrays.at("x").shape, std::vector<int64_t>{2});
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

}  // namespace kelvin::npz_file_test
