#include "kelvin/formats/mat_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/mats.h"

namespace kelvin::mat_file_test {

using namespace std::string_literals;

struct ReadArray {
  std::vector<int64_t> shape;
  std::vector<int64_t> integers;
};

std::map<std::string, ReadArray> read_all(const std::string& bytes) {
  std::map<std::string, ReadArray> arrays;
  visit_mat(bytes, "a", [&](const MatArray& array) {
    arrays[std::string(array.name)] = {array.shape, array.integers("a")};
    EXPECT_EQ(array.size(), static_cast<int64_t>(arrays[std::string(array.name)].integers.size()));
  });
  return arrays;
}

std::string refusal_of(const std::string& bytes) {
  return error_of([&] { read_all(bytes); });
}

std::string number(uint32_t value) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &value, 4);
  return bytes;
}

std::string element(uint32_t type, const std::string& data) {
  return number(type) + number(static_cast<uint32_t>(data.size())) + data +
         std::string((8 - data.size() % 8) % 8, '\0');
}

std::string file_of(const std::string& elements) {
  return std::string(124, ' ') + "\x00\x01IM"s + elements;
}

// An array of bytes called "ab", made by hand so that a test can put a lie into any part.
struct HandMade {
  std::string flags = element(6, number(9) + number(0));
  std::string shape = element(5, number(2) + number(1));
  std::string name = element(1, "ab");
  std::string data = element(2, "xy");

  std::string file() const { return file_of(element(14, flags + shape + name + data)); }
};

TEST(VisitMat, GivesWhatScipySaves) {
  const std::string arrays =
      "dict(x=np.arange(24, dtype='u1').reshape(2, 3, 4), d=np.array([[1., 2., 500.]]),"
      " i=np.array([[-5], [70000]], 'i4'), s=np.array([[1, -2]], 'i2'), u=np.array([[7]], 'u2'),"
      " f=np.array([[3.]], 'f4'), l=np.array([[2**40]]), m=np.array([[2**40]], 'u8'),"
      " w=np.array([[2**31]], 'u4'), b=np.array([[-1]], 'i1'), text='left out', cell=np.array([[1,"
      " 'a']], dtype=object), a_name_that_is_longer=np.zeros((0, 3)))";
  for (const auto& bytes : scipy_mats({arrays, arrays + ", do_compression=True"})) {
    const auto read = read_all(bytes);
    EXPECT_EQ(read.size(), 11U);
    EXPECT_EQ(read.at("x").shape, (std::vector<int64_t>{2, 3, 4}));
    EXPECT_EQ(read.at("x").integers.at(0), 0);
    EXPECT_EQ(read.at("x").integers.at(1), 12);  // the first index runs fastest
    EXPECT_EQ(read.at("x").integers.at(2), 4);
    EXPECT_EQ(read.at("d").integers, (std::vector<int64_t>{1, 2, 500}));
    EXPECT_EQ(read.at("i").integers, (std::vector<int64_t>{-5, 70000}));
    EXPECT_EQ(read.at("s").integers, (std::vector<int64_t>{1, -2}));
    EXPECT_EQ(read.at("u").integers, (std::vector<int64_t>{7}));
    EXPECT_EQ(read.at("f").integers, (std::vector<int64_t>{3}));
    EXPECT_EQ(read.at("l").integers, (std::vector<int64_t>{int64_t{1} << 40}));
    EXPECT_EQ(read.at("m").integers, (std::vector<int64_t>{int64_t{1} << 40}));
    EXPECT_EQ(read.at("w").integers, (std::vector<int64_t>{int64_t{1} << 31}));
    EXPECT_EQ(read.at("b").integers, (std::vector<int64_t>{-1}));
    EXPECT_EQ(read.at("a_name_that_is_longer").shape, (std::vector<int64_t>{0, 3}));
  }
}

TEST(VisitMat, ReadsAnArrayMadeByHand) {
  const auto read = read_all(HandMade{}.file());
  EXPECT_EQ(read.at("ab").integers, (std::vector<int64_t>{'x', 'y'}));
}

TEST(VisitMat, RefusesOtherFiles) {
  EXPECT_EQ(refusal_of("hello"), "a: too short for a MAT file: 5 bytes");
  EXPECT_EQ(refusal_of(std::string(200, 'x')), "a: byte 126: is not a MAT file of version 5");
  EXPECT_EQ(refusal_of(std::string(124, ' ') + "\x01\x00MI"s),
            "a: byte 126: MAT file must be little-endian, is big-endian");
  EXPECT_EQ(refusal_of(std::string(124, ' ') + "\x00\x02IM"s),
            "a: byte 124: MAT file must be of version 5 (1), is of 2 (7.3, which is HDF5)");
}

TEST(VisitMat, RefusesElementsBeyondTheFile) {
  EXPECT_EQ(refusal_of(file_of("abc")), "a: byte 128: cut off: needs 8 bytes, has 3");
  EXPECT_EQ(refusal_of(file_of(number(14) + number(0xffffffff))),
            "a: byte 128: cut off: element needs 4294967295 bytes, has 0");
  EXPECT_EQ(refusal_of(file_of(number(14 + (5U << 16)) + number(0))),
            "a: byte 128: cut off: element needs 5 bytes, has 4");
  EXPECT_EQ(refusal_of(file_of(element(2, "x"))),
            "a: element at byte 128: must be an array, is of type 2");
}

TEST(VisitMat, RefusesDamagedArrays) {
  HandMade array;
  array.flags = element(5, "12345678");
  EXPECT_EQ(refusal_of(array.file()), "a: element at byte 128: flags of an array are malformed");
  array.flags = element(6, number(0x809) + number(0));
  EXPECT_EQ(refusal_of(array.file()), "a: element at byte 128: array must be real, is complex");
  array = {.shape = element(5, "123")};
  EXPECT_EQ(refusal_of(array.file()),
            "a: element at byte 128: byte 16: shape of an array is malformed");
  array = {.shape = element(5, number(0xffffffff))};
  EXPECT_EQ(refusal_of(array.file()),
            "a: element at byte 128: byte 16: size of an array must not be negative, is -1");
  array = {.name = element(2, "ab")};
  EXPECT_EQ(refusal_of(array.file()),
            "a: element at byte 128: byte 32: name of an array is malformed");
  array = {.data = element(16, "xy")};
  EXPECT_EQ(refusal_of(array.file()),
            "a: element at byte 128: byte 48: array must be of numbers, is of type 16");
}

TEST(VisitMat, RefusesAbsurdShapesBeforeItReservesThem) {
  const std::string most = number(0x7fffffff);
  HandMade array{.shape = element(5, most + number(1))};
  EXPECT_EQ(refusal_of(array.file()),
            "a: element at byte 128: byte 48: shape of an array needs 2147483647 bytes, has 2");
  array.shape = element(5, most + most + most);
  EXPECT_EQ(refusal_of(array.file()), "a: element at byte 128: shape of an array is too large");
  std::string many;
  for (int i = 0; i < 33; ++i) many += number(1);
  array.shape = element(5, many);
  EXPECT_EQ(refusal_of(array.file()),
            "a: element at byte 128: byte 16: shape of an array is malformed");
}

TEST(VisitMat, RefusesDamagedCompression) {
  auto bytes = scipy_mats({"dict(x=np.arange(100)), do_compression=True"}).at(0);
  EXPECT_EQ(read_all(bytes).at("x").integers.size(), 100U);
  bytes.at(150) ^= 0x55;
  EXPECT_NE(refusal_of(bytes).find("a: element at byte 128: "), std::string::npos);
}

TEST(VisitMat, RefusesAFileCutOffInsideOfAnElement) {
  const auto bytes = HandMade{}.file();
  EXPECT_TRUE(read_all(bytes.substr(0, 128)).empty());
  for (size_t length = 129; length < bytes.size(); ++length) {
    EXPECT_NE(refusal_of(bytes.substr(0, length)), "") << length;
  }
}

TEST(MatArray, GivesWholeNumbersOnly) {
  const double half = 0.5;
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &half, 8);
  const MatArray halves{.type = MatType::double_real, .shape = {1}, .bytes = bytes};
  EXPECT_EQ(error_of([&] { halves.integers("a"); }), "a: must be a whole number, is 0.5");
  const MatArray huge{
      .type = MatType::uint64, .shape = {1}, .bytes = "\xff\xff\xff\xff\xff\xff\xff\xff"};
  EXPECT_EQ(error_of([&] { huge.integers("a"); }), "a: number is too large: 18446744073709551615");
  const MatArray nan{.type = MatType::single_real, .shape = {1}, .bytes = "\xff\xff\xff\xff"};
  EXPECT_THROW(nan.integers("a"), Error);
}

}  // namespace kelvin::mat_file_test
