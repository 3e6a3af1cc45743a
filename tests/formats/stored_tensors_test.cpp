#include "kelvin/formats/stored_tensors.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/errors.h"

namespace kelvin::stored_tensors_test {

using namespace std::string_literals;

std::string refusal_of(const std::string& dtype, const std::vector<int64_t>& shape) {
  return error_of([&] { stored_tensor_bytes(dtype, shape, "a"); });
}

TEST(StoredElementBytes, KnowsTheDtypesOfSafetensors) {
  EXPECT_EQ(stored_element_bytes("F64"), 8U);
  EXPECT_EQ(stored_element_bytes("F32"), 4U);
  EXPECT_EQ(stored_element_bytes("F16"), 2U);
  EXPECT_EQ(stored_element_bytes("BF16"), 2U);
  EXPECT_EQ(stored_element_bytes("I64"), 8U);
  EXPECT_EQ(stored_element_bytes("I32"), 4U);
  EXPECT_EQ(stored_element_bytes("I16"), 2U);
  EXPECT_EQ(stored_element_bytes("I8"), 1U);
  EXPECT_EQ(stored_element_bytes("U8"), 1U);
  EXPECT_EQ(stored_element_bytes("BOOL"), 1U);
  for (const char* other : {"", "f32", "F8_E4M3", "U16", "F32 "}) {
    EXPECT_EQ(stored_element_bytes(other), 0U);
  }
}

TEST(StoredTensorBytes, IsTheProductOfSizesAndElement) {
  EXPECT_EQ(stored_tensor_bytes("F32", {}, "a"), 4U);
  EXPECT_EQ(stored_tensor_bytes("F32", {2, 3}, "a"), 24U);
  EXPECT_EQ(stored_tensor_bytes("BF16", {0, 3}, "a"), 0U);
  EXPECT_EQ(stored_tensor_bytes("U8", {int64_t{1} << 62, 1}, "a"), uint64_t{1} << 62);
  EXPECT_EQ(stored_tensor_bytes("U8", std::vector<int64_t>(64, 1), "a"), 1U);
}

TEST(StoredTensorBytes, RefusesWhatNoTensorHas) {
  EXPECT_EQ(refusal_of("F8\n", {}),
            "a: dtype must be F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL, is 'F8?'");
  EXPECT_EQ(refusal_of("U8", {2, -1}), "a: shape has a negative size");
  EXPECT_EQ(refusal_of("F32", {int64_t{1} << 61}), "a: shape is too large");
  EXPECT_EQ(refusal_of("U8", {int64_t{1} << 32, int64_t{1} << 31}), "a: shape is too large");
  // 0 bytes, but no tensor can have such strides.
  EXPECT_EQ(refusal_of("U8", {0, int64_t{1} << 62, 8}), "a: shape is too large");
  EXPECT_EQ(refusal_of("U8", std::vector<int64_t>(65, 1)),
            "a: shape must have at most 64 sizes, has 65");
}

TEST(CheckStoredTensor, WantsTheBytesOfTheShape) {
  EXPECT_NO_THROW(check_stored_tensor({.dtype = "F32", .shape = {2}, .bytes = "12345678"}, "a"));
  EXPECT_EQ(error_of([] {
              check_stored_tensor({.dtype = "F32", .shape = {2}, .bytes = "1234567"}, "a");
            }),
            "a: shape needs 8 bytes, has 7");
}

TEST(CheckStoredTensor, WantsBooleansThatAreSome) {
  const auto with = [](const std::string& bytes) {
    check_stored_tensor({.dtype = "BOOL", .shape = {3}, .bytes = bytes}, "a");
  };
  EXPECT_NO_THROW(with("\0\1\1"s));
  EXPECT_EQ(error_of([&] { with("\0\1\2"s); }), "a: booleans must be 0 or 1");
  EXPECT_EQ(error_of([&] { with("\xff\1\1"s); }), "a: booleans must be 0 or 1");
}

TEST(CheckNamesDiffer, FindsOneThatComesTwice) {
  EXPECT_NO_THROW(check_names_differ({}, "a"));
  EXPECT_NO_THROW(check_names_differ({"x", "y", "xy", ""}, "a"));
  EXPECT_EQ(error_of([] {
              check_names_differ({"x\n", "y", "x\n"}, "a");
            }),
            "a: has two tensors 'x?'");
}

}  // namespace kelvin::stored_tensors_test
