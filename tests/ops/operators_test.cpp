#include "kelvin/ops/operators.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "kelvin/ops/cross_entropy.h"
#include "kelvin/ops/neco.h"
#include "kelvin/ops/numerical_rank.h"
#include "tests/support/tensors.h"

namespace kelvin::operators_test {

TEST(Operators, AreTheFunctionsOfTheirNames) {
  const auto logits = noise({6, 5}, 1);
  const auto labels = labels_of({0, 1, 2, 3, 4, 0});
  auto& dispatcher = c10::Dispatcher::singleton();
  const auto loss_at =
      dispatcher.findSchemaOrThrow("kelvin::temperature_cross_entropy", "")
          .typed<torch::Tensor(const torch::Tensor&, const torch::Tensor&, double, double)>();
  const auto loss_at_tensor =
      dispatcher.findSchemaOrThrow("kelvin::temperature_cross_entropy", "learnt")
          .typed<torch::Tensor(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&,
                               double)>();
  const auto three = torch::full({}, 3.0);
  const auto expected = tempered_cross_entropy(logits, labels, three, {.smoothing = 0.1}).loss;
  expect_close(loss_at.call(logits, labels, 3, 0.1), expected, 0);
  expect_close(loss_at_tensor.call(logits, labels, three, 0.1), expected, 0);

  const auto rank = dispatcher.findSchemaOrThrow("kelvin::numerical_rank", "")
                        .typed<torch::Tensor(const torch::Tensor&, double)>();
  expect_close(rank.call(logits, 0.5), numerical_ranks(logits, 0.5), 0);

  const auto neco =
      dispatcher.findSchemaOrThrow("kelvin::neco", "")
          .typed<torch::Tensor(const torch::Tensor&, const torch::Tensor&, int64_t, bool, bool)>();
  expect_close(neco.call(logits, noise({30, 5}, 2), 2, false, false),
               neco_scores(logits, noise({30, 5}, 2), 2, {.scaler = false}), 0);
}

// What torch.compile asks of a kernel before there are numbers.
TEST(RegisteredKernel, KnowsItsResultWithoutNumbers) {
  const RegisteredKernel<torch::Tensor(const torch::Tensor&, double)> shares(
      "kelvin::_entmax_shares");
  const auto result = shares(torch::empty({3, 4}, torch::TensorOptions(torch::kMeta)), 1.5);
  EXPECT_TRUE(result.is_meta());
  EXPECT_EQ(result.sizes(), (torch::IntArrayRef{3, 4}));
}

TEST(RegisteredKernel, RecordsNoGradients) {
  const RegisteredKernel<torch::Tensor(const torch::Tensor&, double)> shares(
      "kelvin::_entmax_shares");
  EXPECT_FALSE(shares(torch::zeros({3, 4}, torch::kFloat64).requires_grad_(), 1.5).requires_grad());
}

}  // namespace kelvin::operators_test
