#include "kelvin/formats/npz_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/npz.h"
#include "tests/support/python.h"

namespace kelvin::npz_file_test {

template <class Number>
std::vector<Number> numbers_of(const Array& array) {
  std::vector<Number> numbers(array.bytes.size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), array.bytes.data(), array.bytes.size());
  return numbers;
}

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

// The same as samples().
constexpr auto kSamplesInPython =
    "logits=np.array([[1, 2, 3], [4, 5, -0.5]], 'f4'), labels=np.array([7, -1]),"
    "small=np.array([[[-5, 6]]], 'i4'), pixels=np.array([0, 128, 255], 'u1'),"
    "temperature=np.float64(0.1), empty=np.zeros((0, 4), 'f4')";

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

TEST(ReadNpz, NamesAFileThatIsNotThere) {
  EXPECT_EQ(error_of([] { read_npz("/no/such.npz"); }),
            "/no/such.npz: cannot read: No such file or directory");
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

}  // namespace kelvin::npz_file_test
