#include "kelvin/formats/safetensors_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kelvin/core/files.h"
#include "tests/support/errors.h"
#include "tests/support/python.h"
#include "tests/support/real_data.h"
#include "tests/support/safetensors.h"

namespace kelvin::safetensors_file_test {

using namespace std::literals;

std::string refusal_of(const std::string& bytes) {
  return error_of([&] { parse_safetensors(bytes, "a"); });
}

std::string refusal_of(const std::string& json, const std::string& data) {
  return refusal_of(safetensors_with(json, data));
}

// One entry of a header.
std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

const std::string kTwo = "{" + entry("x", "U8", "[2]", "[0,2]") + "}";

StoredTensors some_tensors() {
  return {.tensors = {{.name = "b.weight", .dtype = "F32", .shape = {1, 2}, .bytes = "12345678"},
                      {.name = "none", .dtype = "F64", .shape = {0, 3}, .bytes = ""},
                      {.name = "a \"\n\xc3\xa9", .dtype = "I16", .shape = {}, .bytes = "xy"},
                      {.name = "", .dtype = "BOOL", .shape = {3}, .bytes = "\0\1\1"sv},
                      {.name = "last", .dtype = "U8", .shape = {0}, .bytes = ""}},
          .metadata = {{"format", "pt"}, {"\xe2\x82\xac", "\"\\\n"}}};
}

void expect_same(const StoredTensors& actual, const StoredTensors& expected) {
  ASSERT_EQ(actual.tensors.size(), expected.tensors.size());
  for (size_t i = 0; i < actual.tensors.size(); ++i) {
    EXPECT_EQ(actual.tensors.at(i).name, expected.tensors.at(i).name);
    EXPECT_EQ(actual.tensors.at(i).dtype, expected.tensors.at(i).dtype);
    EXPECT_EQ(actual.tensors.at(i).shape, expected.tensors.at(i).shape);
    EXPECT_EQ(actual.tensors.at(i).bytes, expected.tensors.at(i).bytes);
  }
  EXPECT_EQ(actual.metadata, expected.metadata);
}

TEST(Safetensors, AreTheBytesOfTheFormat) {
  const StoredTensors tensors = {
      .tensors = {{.name = "x", .dtype = "U8", .shape = {2, 1}, .bytes = "ab"},
                  {.name = "y", .dtype = "F32", .shape = {}, .bytes = "cdef"}},
      .metadata = {{"k", "v"}}};
  const auto header = R"({"__metadata__":{"k":"v"},)"
                      R"("x":{"dtype":"U8","shape":[2,1],"data_offsets":[0,2]},)"
                      R"("y":{"dtype":"F32","shape":[],"data_offsets":[2,6]}}    )"s;
  ASSERT_EQ(header.size() % 8, 0U);
  EXPECT_EQ(safetensors_bytes(tensors), safetensors_with(header, "abcdef"));
  EXPECT_EQ(safetensors_bytes({}), safetensors_with("{}      ", ""));
}

TEST(Safetensors, ComeBackAsTheyWereWritten) {
  const auto bytes = safetensors_bytes(some_tensors());
  expect_same(parse_safetensors(bytes, "a"), some_tensors());
  EXPECT_EQ(safetensors_bytes(parse_safetensors(bytes, "a")), bytes);
}

TEST(Safetensors, PointIntoTheFileWhoeverHoldsIt) {
  StoredTensors kept;
  {
    const auto parsed = parse_safetensors(safetensors_with(kTwo, "ab"), "a");
    kept = parsed;
  }
  EXPECT_EQ(kept.tensors.at(0).bytes, "ab");
  EXPECT_EQ(kept.tensors.at(0).bytes.data(), kept.file->data() + kept.file->size() - 2);
}

TEST(Safetensors, AreInTheOrderOfTheirBytes) {
  const auto parsed = parse_safetensors(
      safetensors_with(
          "{" + entry("z", "U8", "[2]", "[3,5]") + "," + entry("e2", "U8", "[0]", "[3,3]") + "," +
              entry("e1", "U8", "[0]", "[3,3]") + "," + entry("b", "U8", "[1]", "[2,3]") + "," +
              entry("c", "U8", "[2]", "[0,2]") + "}",
          "ccbzz"),
      "a");
  std::string order;
  for (const auto& tensor : parsed.tensors) order += tensor.name + " ";
  EXPECT_EQ(order, "c b e2 e1 z ");
  EXPECT_EQ(parsed.tensors.back().bytes, "zz");
}

// Written by Python after the format's description, and read back by it.
TEST(Safetensors, AreThoseOfAnotherEncoder) {
  const TemporaryFolder folder;
  python_output(R"(
import json, struct, sys
import numpy as np
types = {'F64': '<f8', 'F32': '<f4', 'F16': '<f2', 'BF16': '<u2', 'I64': '<i8', 'I32': '<i4',
         'I16': '<i2', 'I8': 'i1', 'U8': 'u1', 'BOOL': '?'}
random = np.random.default_rng(1)
header, data, dump = {'__metadata__': {'written': 'by hand \u00e9'}}, b'', b''
for dtype, numpy_type in types.items():
    for shape in [(), (1,), (2, 3), (0, 4), (3, 1, 2)]:
        array = (random.integers(0, 2 if dtype == 'BOOL' else 100, shape)).astype(numpy_type)
        name = f'{dtype}.{len(shape)}'
        begin, data = len(data), data + array.tobytes()
        header[name + f'.{array.size}'] = {
            'data_offsets': [begin, len(data)], 'shape': list(shape), 'dtype': dtype}
text = json.dumps(header, indent=1).encode()
open(sys.argv[1], 'wb').write(struct.pack('<Q', len(text)) + text + data)
open(sys.argv[2], 'wb').write(data)
)",
                {folder / "a", folder / "data"});
  const auto parsed = parse_safetensors(read_file(folder / "a"), "a");
  ASSERT_EQ(parsed.tensors.size(), 50U);
  EXPECT_EQ(parsed.tensors.at(2).name, "F64.2.6");
  EXPECT_EQ(parsed.tensors.at(2).dtype, "F64");
  EXPECT_EQ(parsed.tensors.at(2).shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(parsed.metadata.at("written"), "by hand \xc3\xa9");
  std::string data;
  for (const auto& tensor : parsed.tensors) data += tensor.bytes;
  EXPECT_EQ(data, read_file(folder / "data"));

  write_file_atomically(folder / "b", safetensors_bytes(parsed));
  EXPECT_EQ(python_output(R"(
import json, struct, sys
def parts(path):
    raw = open(path, 'rb').read()
    length, = struct.unpack('<Q', raw[:8])
    return length, json.loads(raw[8:8 + length]), raw[8 + length:]
a, b = parts(sys.argv[1]), parts(sys.argv[2])
print(b[0] % 8, a[1:] == b[1:], list(a[1]) == list(b[1]))
)",
                          {folder / "a", folder / "b"}),
            "0 True True\n");
}

class RealSafetensors : public RealData {};

TEST_F(RealSafetensors, KeepEveryByteOfPublishedWeights) {
  const auto file = read_file(data_folder() / "weights" / "cifar10-resnet20.safetensors");
  const auto first = parse_safetensors(file, "a");
  ASSERT_EQ(first.tensors.size(), 97U);
  const auto written = safetensors_bytes(first);
  const auto second = parse_safetensors(written, "b");
  expect_same(second, first);
  EXPECT_EQ(safetensors_bytes(second), written);
  std::string data;
  for (const auto& tensor : second.tensors) data += tensor.bytes;
  EXPECT_TRUE(file.ends_with(data));
  EXPECT_TRUE(written.ends_with(data));
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  EXPECT_EQ(data.size(), file.size() - 8 - length);
}

TEST(Safetensors, CutOffAnywhereAreAnError) {
  const auto whole = safetensors_bytes(some_tensors());
  for (size_t length = 0; length < whole.size(); ++length) {
    const auto message = refusal_of(whole.substr(0, length));
    EXPECT_TRUE(message.starts_with("a: ")) << length << ": " << message;
  }
  EXPECT_EQ(refusal_of("1234567"), "a: too short for a safetensors file: 7 bytes");
}

TEST(Safetensors, HaveAHeaderOfItsLength) {
  EXPECT_EQ(refusal_of("\x03\0\0\0\0\0\0\0{}"s), "a: header length 3 does not fit the file");
  EXPECT_EQ(refusal_of("\x01\0\0\0\0\0\0\0{}"s), "a: header length 1 does not fit the file");
  EXPECT_EQ(refusal_of(std::string(8, '\0') + "{}"), "a: header length 0 does not fit the file");
  EXPECT_EQ(refusal_of(std::string(8, '\xff') + "{}"),
            "a: header length 18446744073709551615 does not fit the file");
  EXPECT_EQ(refusal_of("[]", ""), "a: the header is not a JSON object");
}

TEST(Safetensors, HaveKnownTypes) {
  EXPECT_EQ(refusal_of("{" + entry("x\\n", "F8_E4M3", "[2]", "[0,2]") + "}", "ab"),
            "a: 'x?': dtype must be F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL, is "
            "'F8_E4M3'");
}

TEST(Safetensors, LieInsideOfTheFile) {
  for (const char* offsets :
       {"[0,3]", "[2,0]", "[0]", "[]", "[0,18446744073709551615]", "[18446744073709551614,0]"}) {
    EXPECT_EQ(refusal_of("{" + entry("x", "U8", "[2]", offsets) + "}", "ab"),
              "a: 'x': data_offsets lie outside of the file")
        << offsets;
  }
}

TEST(Safetensors, HaveTheBytesOfTheirShape) {
  EXPECT_EQ(refusal_of("{" + entry("x", "F32", "[2]", "[0,4]") + "}", "abcd"),
            "a: 'x': shape needs 8 bytes, data_offsets have 4");
  EXPECT_EQ(refusal_of("{" + entry("x", "F32", "[4611686018427387904]", "[0,4]") + "}", "abcd"),
            "a: 'x': shape is too large");
  EXPECT_EQ(refusal_of("{" + entry("x", "U8", "[18446744073709551615]", "[0,1]") + "}", "a"),
            "a: 'x': shape is too large");
  EXPECT_EQ(refusal_of("{" + entry("x", "U8", "[0,4611686018427387904,8]", "[0,0]") + "}", ""),
            "a: 'x': shape is too large");
  EXPECT_EQ(refusal_of("{" + entry("x", "BOOL", "[2]", "[0,2]") + "}", "\1\2"),
            "a: 'x': booleans must be 0 or 1");
}

TEST(Safetensors, CoverTheFileWithoutHolesAndOverlaps) {
  EXPECT_EQ(refusal_of(kTwo, "abc"), "a: tensors cover 2 of 3 bytes");
  EXPECT_EQ(refusal_of("{}", "abc"), "a: tensors cover 0 of 3 bytes");
  EXPECT_EQ(refusal_of("{" + entry("x", "U8", "[2]", "[1,3]") + "}", "abc"),
            "a: there is a hole or an overlap at byte 0 of the data");
  EXPECT_EQ(refusal_of("{" + entry("x", "U8", "[2]", "[0,2]") + "," +
                           entry("y", "U8", "[2]", "[0,2]") + "}",
                       "abcd"),
            "a: there is a hole or an overlap at byte 0 of the data");
  EXPECT_EQ(refusal_of("{" + entry("x", "U8", "[3]", "[0,3]") + "," +
                           entry("y", "U8", "[2]", "[2,4]") + "}",
                       "abcd"),
            "a: there is a hole or an overlap at byte 2 of the data");
  EXPECT_EQ(refusal_of("{" + entry("x", "U8", "[3]", "[0,3]") + "," +
                           entry("y", "U8", "[0]", "[2,2]") + "}",
                       "abc"),
            "a: there is a hole or an overlap at byte 2 of the data");
}

TEST(SafetensorsBytes, RefusesWhatCouldNotBeRead) {
  const auto refusal = [](const StoredTensors& tensors) {
    return error_of([&] { safetensors_bytes(tensors); });
  };
  const StoredTensor x = {.name = "x", .dtype = "U8", .shape = {1}, .bytes = "a"};
  EXPECT_EQ(refusal({.tensors = {x, x}}), "safetensors_bytes: 'x': the name is taken");
  EXPECT_EQ(refusal({.tensors = {{.name = "__metadata__", .dtype = "U8", .bytes = "a"}}}),
            "safetensors_bytes: '__metadata__': the name is taken");
  EXPECT_EQ(refusal({.tensors = {{.name = "x", .dtype = "F32", .bytes = "a"}}}),
            "safetensors_bytes: 'x': shape needs 4 bytes, has 1");
  EXPECT_EQ(refusal({.tensors = {{.name = "x\xff", .dtype = "U8", .bytes = "a"}}}),
            "safetensors_bytes: names and metadata must be in UTF-8, 'x?' is not");
  EXPECT_EQ(refusal({.metadata = {{"k", "\xff"}}}),
            "safetensors_bytes: names and metadata must be in UTF-8, '?' is not");
  EXPECT_EQ(refusal({.metadata = {{"k", std::string(100'000'001, 'x')}}}),
            "safetensors_bytes: header must have at most 100000000 bytes, has more");
}

StoredTensors with_checksum() {
  StoredTensors tensors{
      .tensors = {{.name = "a", .dtype = "F32", .shape = {2}, .bytes = "abcdefgh"},
                  {.name = "b", .dtype = "U8", .shape = {0}, .bytes = ""},
                  {.name = "c", .dtype = "U8", .shape = {1}, .bytes = "9"}},
      .metadata = {{"format", "pt"}}};
  tensors.metadata[kChecksumKey] = checksum_text(tensors.tensors);
  return tensors;
}

TEST(SafetensorsChecksum, IsOfAllBytesOfTheTensors) {
  const std::string whole = "abcdefgh9";
  const StoredTensor joined{.name = "x", .dtype = "U8", .shape = {9}, .bytes = whole};
  EXPECT_EQ(checksum_text(with_checksum().tensors), checksum_text({joined}));
  EXPECT_EQ(checksum_text({{.name = "x", .dtype = "U8", .shape = {9}, .bytes = "123456789"}}),
            "e3069283");
}

TEST(SafetensorsChecksum, TellsEveryFlippedBitOfTheTensors) {
  const auto file = safetensors_bytes(with_checksum());
  const auto read = parse_safetensors(file, "a");
  EXPECT_EQ(read.metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
  for (size_t place = file.size() - 9; place < file.size(); ++place) {
    for (int bit = 0; bit < 8; ++bit) {
      auto damaged = file;
      damaged[place] = static_cast<char>(damaged[place] ^ (1 << bit));
      EXPECT_EQ(error_of([&] { parse_safetensors(damaged, "a"); }),
                "a: its tensors do not have the checksum that kelvin gave them: the file is "
                "damaged, or another program changed them and kept kelvin.crc32c");
    }
  }
}

TEST(SafetensorsChecksum, NeedNotBeThere) {
  auto plain = with_checksum();
  plain.metadata.erase(kChecksumKey);
  EXPECT_EQ(parse_safetensors(safetensors_bytes(plain), "a").tensors.size(), 3U);
}

}  // namespace kelvin::safetensors_file_test
