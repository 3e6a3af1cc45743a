#include "kelvin/math/batched_product.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <vector>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

constexpr double kFactor = 0.125;

struct Factors {
  torch::Tensor left;   // [3, 4, 7, 5]
  torch::Tensor right;  // [3, 4, 5, 6]
};

// As they lie in attention: heads of a token side by side, one of them transposed, or without gaps.
std::vector<Factors> layouts() {
  torch::manual_seed(1);
  const auto by_token = torch::randn({3, 7, 4, 5}).transpose(1, 2);
  const auto by_column = torch::randn({3, 6, 4, 5}).permute({0, 2, 3, 1});
  return {{.left = torch::randn({3, 4, 7, 5}), .right = torch::randn({3, 4, 5, 6})},
          {.left = by_token, .right = by_column},
          {.left = torch::randn({3, 4, 5, 7}).transpose(2, 3),
           .right = torch::randn({3, 5, 4, 6}).transpose(1, 2)}};
}

double difference(const torch::Tensor& actual, const torch::Tensor& expected) {
  return (actual.to(torch::kFloat64) - expected).abs().max().item<double>();
}

TEST(BatchedProduct, IsTheProductOfEachPairWhereverTheirNumbersLie) {
  for (const auto& [left, right] : layouts()) {
    ASSERT_TRUE(suits_batched_product(left, right));
    const auto expected =
        kFactor * torch::matmul(left.to(torch::kFloat64), right.to(torch::kFloat64));
    for (const auto order : {ProductOrder::matrices, ProductOrder::rows}) {
      const auto product = batched_product(left, right, kFactor, order);
      EXPECT_EQ(product.sizes(), (torch::IntArrayRef{3, 4, 7, 6}));
      EXPECT_LT(difference(product, expected), 1e-6);
    }
  }
}

TEST(BatchedProduct, LaysHeadsSideBySideIfAsked) {
  const auto [left, right] = layouts().front();
  EXPECT_TRUE(batched_product(left, right).is_contiguous());
  EXPECT_TRUE(batched_product(left, right, 1, ProductOrder::rows).transpose(1, 2).is_contiguous());
}

TEST(BatchedProduct, HasTheGradientsOfMatmul) {
  for (const auto& [left, right] : layouts()) {
    for (const auto order : {ProductOrder::matrices, ProductOrder::rows}) {
      const auto seen = torch::randn({3, 4, 7, 6});
      const auto own = [](const torch::Tensor& tensor, torch::ScalarType type) {
        return tensor.detach().to(type).set_requires_grad(true);
      };
      const auto ours = std::vector{own(left, torch::kFloat32), own(right, torch::kFloat32)};
      batched_product(ours[0], ours[1], kFactor, order).backward(seen);
      const auto exact = std::vector{own(left, torch::kFloat64), own(right, torch::kFloat64)};
      (kFactor * torch::matmul(exact[0], exact[1])).backward(seen.to(torch::kFloat64));
      for (size_t i = 0; i < 2; ++i) EXPECT_LT(difference(ours[i].grad(), exact[i].grad()), 1e-5);
    }
  }
}

// The gradient of a sum is one number, seen everywhere.
TEST(BatchedProduct, TakesAGradientThatIsSpreadOverOneElement) {
  const auto left = torch::ones({1, 1, 1, 4}).set_requires_grad(true);
  const auto right = torch::full({1, 1, 4, 1}, 3.0).set_requires_grad(true);
  batched_product(left, right).sum().backward();
  EXPECT_TRUE(left.grad().eq(3).all().item<bool>());
  EXPECT_TRUE(right.grad().eq(1).all().item<bool>());
}

TEST(BatchedProduct, HasFirstDerivativesOnly) {
  const auto left = torch::ones({1, 1, 2, 4}).set_requires_grad(true);
  const auto right = torch::ones({1, 1, 4, 2}).set_requires_grad(true);
  const auto product = batched_product(left, right).square().sum();
  EXPECT_EQ(error_of([&] {
              torch::autograd::grad({product}, {left}, {}, /*retain_graph=*/true,
                                    /*create_graph=*/true);
            }),
            "batched_product: has first derivatives only; those of higher order need a PlainScope");
}

TEST(BatchedProduct, HasTheSameBitsOnAnyNumberOfThreads) {
  const auto [left, right] = layouts().at(1);
  const auto before = at::get_num_threads();
  at::set_num_threads(1);
  const auto alone = batched_product(left, right);
  at::set_num_threads(3);
  const auto together = batched_product(left, right);
  at::set_num_threads(before);
  EXPECT_TRUE(alone.equal(together));
}

TEST(BatchedProduct, SaysWhatItCannotDo) {
  const auto factors = layouts().front();
  const auto& left = factors.left;
  const auto& right = factors.right;
  EXPECT_FALSE(suits_batched_product(left.to(torch::kFloat64), right.to(torch::kFloat64)));
  EXPECT_FALSE(suits_batched_product(left[0], right[0]));
  EXPECT_FALSE(suits_batched_product(left, right.narrow(2, 0, 4)));
  EXPECT_FALSE(suits_batched_product(left.expand({3, 4, 7, 5}).slice(3, 0, 5, 2), right));
  EXPECT_EQ(error_of([&] { batched_product(left, left); }),
            "batched_product: needs float32 matrices [samples, heads, rows, terms] and [samples, "
            "heads, terms, columns] on a CPU, got [3, 4, 7, 5] and [3, 4, 7, 5]");
}

}  // namespace
}  // namespace kelvin
