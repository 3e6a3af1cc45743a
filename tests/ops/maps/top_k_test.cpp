#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/simplex.h"
#include "tests/support/tensors.h"

namespace kelvin::top_k_test {

TEST(TopK, IsSoftmaxOverTheLargest) {
  const auto logits = doubles({std::log(2), 0, std::log(5), std::log(3), -7});
  expect_close(mapped("top_k", logits, {{"k", 1}}), doubles({0, 0, 1, 0, 0}), 0);
  expect_close(mapped("top_k", logits, {{"k", 2}}), doubles({0, 0, 5. / 8, 3. / 8, 0}), 1e-15);
  expect_close(mapped("top_k", logits, {{"k", 3}}), doubles({0.2, 0, 0.5, 0.3, 0}), 1e-15);
}

TEST(TopK, IsSoftmaxWhereItHasRoomForAll) {
  const auto logits = noise({5, 7}, 1);
  expect_close(mapped("top_k", logits, {{"k", 7}}), torch::softmax(logits, -1), 1e-15);
  expect_close(mapped("top_k", logits, {{"k", 1000}}), torch::softmax(logits, -1), 1e-15);
}

TEST(TopK, KeepsEightUnlessToldOtherwise) {
  const auto shares = mapped("top_k", noise({5, 20}, 2));
  expect_close((shares > 0).sum(-1), torch::full({5}, 8), 0);
}

TEST(TopK, TakesTheFirstOfEqualLogits) {
  expect_close(mapped("top_k", doubles({0, 1, 0, 1, 0}), {{"k", 3}})[0],
               mapped("top_k", doubles({0, 1, 1}), {{"k", 3}})[0], 1e-15);
  // Long enough for sorts that are stable on short rows only.
  auto expected = torch::zeros(5000);
  expected.narrow(0, 0, 4).fill_(0.25);
  expect_close(mapped("top_k", torch::full({5000}, 0.5), {{"k", 4}}), expected, 0);
}

TEST(TopK, AgreesWithNumPy) {
  const auto logits = (4 * noise({100, 30}, 3)).round();  // full of ties
  const auto expected = oracle(R"(
z = x["logits"]
kept = np.argsort(-z, axis=1, kind="stable")[:, :5]
shares = np.zeros_like(z)
e = np.exp(np.take_along_axis(z, kept, 1) - z.max(1, keepdims=True))
np.put_along_axis(shares, kept, e / e.sum(1, keepdims=True), 1)
out["shares"] = shares
)",
                               {{"logits", logits}});
  expect_close(mapped("top_k", logits, {{"k", 5}}), expected.at("shares"), 1e-14);
}

TEST(TopK, RejectsAKBelowOne) {
  EXPECT_EQ(error_of([] {
              mapped("top_k", doubles({1}), {{"k", 0}});
            }),
            "here.k: must be at least 1, got 0");
}

}  // namespace kelvin::top_k_test
