#include "kelvin/kernels/bf16_linear.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kelvin/ops/tensors.h"
#include "tests/support/tensors.h"

namespace kelvin::bf16_linear_test {

torch::Tensor brain(const std::vector<int64_t>& sizes, uint64_t seed) {
  return noise(sizes, seed).to(torch::kBFloat16);
}

torch::Tensor wide(const torch::Tensor& tensor) { return tensor.to(torch::kFloat64); }

// Sums of float32, rounded once.
void expect_rounded(const torch::Tensor& ours, const torch::Tensor& exact) {
  const auto off = (wide(ours) - exact).abs();
  EXPECT_TRUE((off <= 0x1p-8 * exact.abs() + 1e-4).all().item<bool>()) << off.max();
}

class Bf16LinearKernels : public testing::TestWithParam<Bf16LinearShape> {
 protected:
  void SetUp() override {
    if (!has_bf16_linear()) GTEST_SKIP() << "no products of bfloat16";
  }
  // Results of all columns, as they are computed in ranges that end at `cuts`; NaN before that.
  template <class Compute>
  torch::Tensor results(int64_t columns, std::vector<int64_t> cuts, const Compute& compute) const {
    auto result = torch::full({shape_.rows, columns}, NAN, torch::kBFloat16);
    int64_t begin = 0;
    cuts.push_back(columns);
    for (const auto cut : cuts) {
      const auto end = std::min(cut, columns);
      compute(begin, end, numbers(result));
      begin = end;
    }
    return result;
  }
  torch::Tensor forward(const std::vector<int64_t>& cuts, const float* bias) const {
    return results(shape_.outputs, cuts, [&](int64_t begin, int64_t end, Bf16* y) {
      bf16_linear(shape_, numbers(x_), weight_.data_ptr<float>(), bias, begin, end, y);
    });
  }
  torch::Tensor backward(const std::vector<int64_t>& cuts) const {
    return results(shape_.inputs, cuts, [&](int64_t begin, int64_t end, Bf16* y) {
      bf16_linear_back(shape_, numbers(gradients_), weight_.data_ptr<float>(), begin, end, y);
    });
  }

  const Bf16LinearShape shape_ = GetParam();
  const torch::Tensor x_ = brain({shape_.rows, shape_.inputs}, 1);
  const torch::Tensor gradients_ = brain({shape_.rows, shape_.outputs}, 2);
  const torch::Tensor weight_ = noise({shape_.outputs, shape_.inputs}, 3).to(torch::kFloat32);
  const torch::Tensor rounded_ = wide(weight_.to(torch::kBFloat16));
  const torch::Tensor bias_ = noise({shape_.outputs}, 4).to(torch::kFloat32);
};

TEST_P(Bf16LinearKernels, MultiplyByRoundedWeights) {
  const auto product = wide(x_).matmul(rounded_.t());
  expect_rounded(forward({}, nullptr), product);
  expect_rounded(forward({}, bias_.data_ptr<float>()), product + bias_);
  expect_rounded(backward({}), wide(gradients_).matmul(rounded_));
}

// Ranges of one and of three vectors, and one that ends within a panel.
TEST_P(Bf16LinearKernels, GiveEachRangeTheBitsOfTheWhole) {
  const std::vector<int64_t> cuts = {16, 64, 176};
  EXPECT_TRUE(forward(cuts, bias_.data_ptr<float>()).equal(forward({}, bias_.data_ptr<float>())));
  EXPECT_TRUE(backward(cuts).equal(backward({})));
}

TEST_P(Bf16LinearKernels, GiveEachRowTheSameBitsAloneAndAmongOthers) {
  const auto together = forward({}, nullptr);
  auto alone = torch::full_like(together, NAN);
  auto one = shape_;
  one.rows = 1;
  for (int64_t row = 0; row < shape_.rows; ++row) {
    bf16_linear(one, numbers(x_) + row * shape_.inputs, weight_.data_ptr<float>(), nullptr, 0,
                shape_.outputs, numbers(alone) + row * shape_.outputs);
  }
  EXPECT_TRUE(alone.equal(together));
}

// One row; rows in blocks of twelve, four and one; more of them than stay nearby; panels that are
// full, partial and both.
INSTANTIATE_TEST_SUITE_P(Shapes, Bf16LinearKernels,
                         testing::Values(Bf16LinearShape{.rows = 1, .inputs = 32, .outputs = 32},
                                         Bf16LinearShape{.rows = 3, .inputs = 288, .outputs = 64},
                                         Bf16LinearShape{.rows = 17, .inputs = 96, .outputs = 160},
                                         Bf16LinearShape{.rows = 29, .inputs = 128, .outputs = 256},
                                         Bf16LinearShape{
                                             .rows = 109, .inputs = 32, .outputs = 224}));

class Bf16Pairs : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_bf16_linear()) GTEST_SKIP() << "no products of bfloat16";
  }
};

TEST_F(Bf16Pairs, PutRowsNextToEachOther) {
  constexpr int64_t kColumns = 80;
  constexpr int64_t kBegin = 3;
  for (const int64_t rows : {1, 2, 7, 32, 33, 71}) {
    const auto x = brain({kBegin + rows, kColumns}, 5);
    auto pairs = torch::full({bf16_pairs_size(rows, kColumns)}, NAN, torch::kBFloat16);
    ASSERT_EQ(pairs.numel(), kColumns * ((rows + 1) / 2 * 2));
    auto sums = torch::ones({kColumns});
    const Bf16Rows which{
        .data = numbers(x), .columns = kColumns, .begin = kBegin, .end = kBegin + rows};
    bf16_pairs(which, 48, kColumns, numbers(pairs), sums.data_ptr<float>());
    bf16_pairs(which, 0, 48, numbers(pairs), sums.data_ptr<float>());
    const auto mine = x.narrow(0, kBegin, rows);
    const auto even = torch::constant_pad_nd(mine, {0, 0, 0, rows % 2});
    const auto expected = even.view({-1, 2, kColumns / 16, 16}).permute({2, 0, 3, 1});
    EXPECT_TRUE(pairs.equal(expected.reshape(-1))) << rows;
    expect_close(sums, wide(mine).sum(0) + 1, 1e-4);  // added to what was there
    bf16_pairs(which, 0, kColumns, numbers(pairs), nullptr);
    EXPECT_TRUE(pairs.equal(expected.reshape(-1))) << rows;
  }
}

// The gradient of the weights by shares of so many rows, outputs dealt in two ranges.
torch::Tensor weight_gradient(const torch::Tensor& gradients, const torch::Tensor& x,
                              int64_t rows_of_a_share, float* to) {
  const Bf16LinearShape shape{.rows = x.size(0), .inputs = x.size(1), .outputs = gradients.size(1)};
  const auto pairs_of = [&](const torch::Tensor& matrix, int64_t begin, int64_t end) {
    const auto columns = matrix.size(1);
    auto pairs = torch::full({bf16_pairs_size(end - begin, columns)}, NAN, torch::kBFloat16);
    bf16_pairs({.data = numbers(matrix), .columns = columns, .begin = begin, .end = end}, 0,
               columns, numbers(pairs), nullptr);
    return pairs;
  };
  std::fill_n(to, shape.outputs * shape.inputs, NAN);
  for (int64_t first = 0; first < shape.rows; first += rows_of_a_share) {
    const auto last = std::min(first + rows_of_a_share, shape.rows);
    const auto left = pairs_of(gradients, first, last);
    const auto right = pairs_of(x, first, last);
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{48, shape.outputs}, {0, 48}}) {
      bf16_linear_weights(
          shape, {.gradients = numbers(left), .inputs = numbers(right), .rows = last - first},
          first == 0, begin, end, to);
    }
  }
  return torch::from_blob(to, {shape.outputs, shape.inputs}).clone();
}

TEST_F(Bf16Pairs, MultiplyToTheGradientOfTheWeights) {
  for (const int64_t rows : {1, 2, 33, 512}) {
    const auto x = brain({rows, 96}, 6);
    const auto gradients = brain({rows, 80}, 7);
    const auto expected = wide(gradients).t().matmul(wide(x));
    // Rows that lie at multiples of 64 bytes are written past the caches.
    const auto room = torch::empty({80 * 96 + 1});
    const auto streamed = weight_gradient(gradients, x, 512, room.data_ptr<float>());
    expect_close(streamed, expected, 1e-4);
    EXPECT_TRUE(weight_gradient(gradients, x, 512, room.data_ptr<float>() + 1).equal(streamed));
    expect_close(weight_gradient(gradients, x, 31, room.data_ptr<float>()), expected, 1e-4);
  }
}

}  // namespace kelvin::bf16_linear_test
