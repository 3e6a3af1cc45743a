#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kelvin/formats/safetensors_file.h"
#include "tests/support/errors.h"
#include "tests/support/safetensors.h"

namespace kelvin::safetensors_header_test {

using namespace std::string_literals;

std::string header_refusal_of(const std::string& json) {
  return error_of([&] { parse_safetensors_header(json, "a"); });
}

// Of a header with one tensor 'x' that has these fields.
std::string refusal_of_entry(const std::string& fields) {
  return header_refusal_of("{\"x\":{" + fields + "}}");
}

TEST(SafetensorsHeader, SaysWhatTheTextSays) {
  const auto header = parse_safetensors_header(
      R"( {"b\u00e9":{"shape":[2,3],"data_offsets":[7,18446744073709551615],"dtype":"F32"},)"
      R"("__metadata__":{"format":"pt","":""},"":{"dtype":"?","shape":[],"data_offsets":[]}}  )"s
          .substr(1),
      "a");
  ASSERT_EQ(header.entries.size(), 2U);
  EXPECT_EQ(header.entries.at(0).name, "b\xc3\xa9");
  EXPECT_EQ(header.entries.at(0).dtype, "F32");
  EXPECT_EQ(header.entries.at(0).shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(header.entries.at(0).offsets, (std::vector<uint64_t>{7, ~uint64_t{0}}));
  EXPECT_EQ(header.entries.at(1).name, "");
  EXPECT_EQ(header.metadata, (std::map<std::string, std::string>{{"format", "pt"}, {"", ""}}));
}

TEST(SafetensorsHeader, MayBeEmpty) {
  const auto header = parse_safetensors_header("{}", "a");
  EXPECT_TRUE(header.entries.empty());
  EXPECT_TRUE(header.metadata.empty());
  EXPECT_TRUE(parse_safetensors_header(R"({"__metadata__":{}})", "a").entries.empty());
}

TEST(SafetensorsHeader, MustBeAnObject) {
  EXPECT_EQ(header_refusal_of(""), "a: the header is not a JSON object");
  EXPECT_EQ(header_refusal_of("[1, 2]"), "a: the header is not a JSON object");
  EXPECT_EQ(header_refusal_of(" {}"), "a: the header is not a JSON object");
  EXPECT_EQ(header_refusal_of("\xef\xbb\xbf{}"), "a: the header is not a JSON object");
}

TEST(SafetensorsHeader, MustBeWholeJson) {
  EXPECT_EQ(header_refusal_of("{\"x\": "),
            "a: the header is not a JSON object: it is malformed at byte 7");
  EXPECT_EQ(header_refusal_of("{}x"),
            "a: the header is not a JSON object: it is malformed at byte 3");
  EXPECT_EQ(header_refusal_of("{\"\xff\":1}"),
            "a: the header is not a JSON object: it is malformed at byte 3");
  EXPECT_EQ(header_refusal_of("{\"a\nb\":1}"),
            "a: the header is not a JSON object: it is malformed at byte 4");
  EXPECT_EQ(header_refusal_of("{}//"),
            "a: the header is not a JSON object: it is malformed at byte 3");
}

// Else the text would end there, and what follows would be in the file unseen.
TEST(SafetensorsHeader, HasNoZeros) {
  EXPECT_EQ(header_refusal_of("{}\0hidden"s),
            "a: the header is not a JSON object: it has zero bytes");
}

TEST(SafetensorsHeader, MayNestAsDeeplyAsItLikes) {
  for (const char* open : {"[", "{\"x\":"}) {
    std::string deep;
    for (int i = 0; i < 1000000; ++i) deep += open;
    EXPECT_LT(header_refusal_of("{\"x\":" + deep).size(), 100U);
    EXPECT_LT(header_refusal_of(R"({"x":{"dtype":"U8","shape":)" + deep).size(), 100U);
    EXPECT_LT(header_refusal_of(R"({"__metadata__":)" + deep).size(), 100U);
    EXPECT_LT(header_refusal_of(R"({"__metadata__":{"x":)" + deep).size(), 100U);
  }
}

TEST(SafetensorsHeader, NamesEachTensorOnce) {
  const std::string entry = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_EQ(header_refusal_of("{\"x\":" + entry + ",\"y\":" + entry + ",\"x\":" + entry + "}"),
            "a: has two tensors 'x'");
  EXPECT_EQ(header_refusal_of("{\"a\\nb\":" + entry + ",\"a\\u000ab\":" + entry + "}"),
            "a: has two tensors 'a?b'");
}

TEST(SafetensorsHeader, HasEachFieldOnce) {
  EXPECT_EQ(refusal_of_entry(R"("dtype":"U8","dtype":"U8")"), "a: 'x': has dtype twice");
  EXPECT_EQ(refusal_of_entry(R"("shape":[],"shape":[])"), "a: 'x': has shape twice");
  EXPECT_EQ(refusal_of_entry(R"("data_offsets":[],"data_offsets":[])"),
            "a: 'x': has data_offsets twice");
}

TEST(SafetensorsHeader, HasAllFieldsAndNoOthers) {
  EXPECT_EQ(refusal_of_entry(""), "a: 'x' needs dtype, shape and data_offsets");
  EXPECT_EQ(refusal_of_entry(R"("dtype":"U8","shape":[2])"),
            "a: 'x' needs dtype, shape and data_offsets");
  EXPECT_EQ(header_refusal_of(R"({"x":7})"), "a: 'x' needs dtype, shape and data_offsets");
  EXPECT_EQ(header_refusal_of(R"({"x":null})"), "a: 'x' needs dtype, shape and data_offsets");
  EXPECT_EQ(header_refusal_of(R"({"x":[]})"), "a: 'x' needs dtype, shape and data_offsets");
  EXPECT_EQ(refusal_of_entry(R"("dtype":"U8","strides\u001b":[2])"),
            "a: 'x': must have dtype, shape and data_offsets alone, has 'strides?'");
}

TEST(SafetensorsHeader, HasFieldsOfTheirKinds) {
  EXPECT_EQ(refusal_of_entry(R"("dtype":8)"), "a: 'x': dtype must be a text");
  EXPECT_EQ(refusal_of_entry(R"("dtype":["U8"])"), "a: 'x': dtype must be a text");
  EXPECT_EQ(refusal_of_entry(R"("shape":3)"), "a: 'x': shape must be a list");
  EXPECT_EQ(refusal_of_entry(R"("shape":{})"), "a: 'x': shape must be a list");
  EXPECT_EQ(refusal_of_entry(R"("shape":["3"])"), "a: 'x': shape must be a list of sizes");
  EXPECT_EQ(refusal_of_entry(R"("shape":[[3]])"), "a: 'x': shape must be a list of sizes");
  EXPECT_EQ(refusal_of_entry(R"("shape":[true])"), "a: 'x': shape must be a list of sizes");
  EXPECT_EQ(refusal_of_entry(R"("data_offsets":"0")"), "a: 'x': data_offsets must be a list");
  EXPECT_EQ(refusal_of_entry(R"("data_offsets":[0,1,2])"),
            "a: 'x': data_offsets must be two places in the file");
  EXPECT_EQ(refusal_of_entry(R"("data_offsets":[null])"),
            "a: 'x': data_offsets must be two places in the file");
}

TEST(SafetensorsHeader, HasWholeNumbersThatAreNotNegative) {
  EXPECT_EQ(refusal_of_entry(R"("shape":[-2])"), "a: 'x': shape has a negative size");
  EXPECT_EQ(refusal_of_entry(R"("data_offsets":[-1,2])"),
            "a: 'x': data_offsets must be two places in the file");
  EXPECT_EQ(refusal_of_entry(R"("shape":[1.5])"),
            "a: 'x': shape must hold whole numbers of 64 bits, has 1.5");
  EXPECT_EQ(refusal_of_entry(R"("shape":[2e0])"),
            "a: 'x': shape must hold whole numbers of 64 bits, has 2e0");
  EXPECT_EQ(refusal_of_entry(R"("data_offsets":[0,18446744073709551616])"),
            "a: 'x': data_offsets must hold whole numbers of 64 bits, has 18446744073709551616");
  EXPECT_LT(refusal_of_entry("\"shape\":[1" + std::string(100000, '0') + "]").size(), 200U);
}

TEST(SafetensorsHeader, HasMetadataOfTexts) {
  EXPECT_EQ(header_refusal_of(R"({"__metadata__":"pt"})"),
            "a: __metadata__ must be an object of texts");
  EXPECT_EQ(header_refusal_of(R"({"__metadata__":[]})"),
            "a: __metadata__ must be an object of texts");
  EXPECT_EQ(header_refusal_of(R"({"__metadata__":{"x\u0007":1}})"),
            "a: __metadata__ must hold texts, 'x?' is none");
  EXPECT_EQ(header_refusal_of(R"({"__metadata__":{"x":{}}})"),
            "a: __metadata__ must hold texts, 'x' is none");
  EXPECT_EQ(header_refusal_of(R"({"__metadata__":{"x":[]}})"),
            "a: __metadata__ must hold texts, 'x' is none");
  EXPECT_EQ(header_refusal_of(R"({"__metadata__":{"x":"1","x":"2"}})"),
            "a: __metadata__ has 'x' twice");
  EXPECT_EQ(header_refusal_of(R"({"__metadata__":{},"__metadata__":{}})"),
            "a: has __metadata__ twice");
}

}  // namespace kelvin::safetensors_header_test
