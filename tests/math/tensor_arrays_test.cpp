#include "kelvin/math/tensor_arrays.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

TEST(TensorArrays, GoThereAndBack) {
  for (const auto type :
       {torch::kFloat32, torch::kFloat64, torch::kFloat16, torch::kBFloat16, torch::kInt64,
        torch::kInt32, torch::kInt16, torch::kInt8, torch::kUInt8, torch::kBool}) {
    const auto tensor = torch::arange(6).view({2, 3}).to(type);
    const auto array = array_of(tensor);
    EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 3}));
    const auto back = tensor_of(array);
    EXPECT_EQ(back.scalar_type(), type);
    EXPECT_TRUE(back.equal(tensor));
  }
}

TEST(TensorArrays, HaveElementsInOrderWhateverTheStrides) {
  const auto tensor = torch::arange(6, torch::kFloat32).view({2, 3}).t();
  EXPECT_TRUE(tensor_of(array_of(tensor)).equal(tensor));
  EXPECT_EQ(array_of(tensor).shape, (std::vector<int64_t>{3, 2}));
}

TEST(TensorArrays, OfAScalarHasNoShape) { EXPECT_TRUE(array_of(torch::tensor(2.5)).shape.empty()); }

TEST(TensorArrays, RejectsTypesThatAnNpzOfOursCannotHold) {
  EXPECT_EQ(error_of([] { array_of(torch::zeros({2}, torch::kComplexFloat)); }),
            "array_of: cannot store tensors of type ComplexFloat");
  EXPECT_EQ(error_of([] { tensor_of({.dtype = "U4", .shape = {}, .bytes = "abcd"}); }),
            "tensor_of: there are no tensors of type 'U4'");
}

TEST(TensorArrays, WidenNumbersWithoutASignExactly) {
  const auto two = tensor_of({.dtype = "u2", .shape = {2, 1}, .bytes = "\xff\xff\x01\x80"});
  EXPECT_TRUE(two.equal(torch::tensor({65535, 32769}, torch::kInt32).view({2, 1})));
  const auto four = tensor_of({.dtype = "u4", .shape = {1}, .bytes = "\xff\xff\xff\xff"});
  EXPECT_TRUE(four.equal(torch::tensor({int64_t{4294967295}})));
  const std::string ones(7, '\xff');
  const auto eight = tensor_of({.dtype = "u8", .shape = {1}, .bytes = ones + "\x7f"});
  EXPECT_TRUE(eight.equal(torch::tensor({std::numeric_limits<int64_t>::max()})));
  EXPECT_EQ(
      error_of([&] { tensor_of({.dtype = "u8", .shape = {1}, .bytes = ones + "\xff"}, "a: 'x'"); }),
      "a: 'x': holds 18446744073709551615, which must be below 2^63");
}

}  // namespace
}  // namespace kelvin
