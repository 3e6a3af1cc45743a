#include "kelvin/math/tensor_arrays.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

TEST(TensorArrays, GoThereAndBack) {
  for (const auto type :
       {torch::kFloat32, torch::kFloat64, torch::kInt64, torch::kInt32, torch::kUInt8}) {
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
  EXPECT_EQ(error_of([] { array_of(torch::zeros({2}, torch::kBFloat16)); }),
            "array_of: cannot store tensors of type BFloat16");
  EXPECT_EQ(error_of([] { tensor_of({.dtype = "U4", .shape = {}, .bytes = "abcd"}); }),
            "tensor_of: there are no tensors of type 'U4'");
}

}  // namespace
}  // namespace kelvin
