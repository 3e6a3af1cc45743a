#include <gtest/gtest.h>
#include <torch/types.h>

#include "kelvin/ops/entmax.h"
#include "tests/support/errors.h"
#include "tests/support/simplex.h"
#include "tests/support/tensors.h"

namespace kelvin::alpha_entmax_test {

TEST(AlphaEntmaxMap, IsEntmaxOfItsAlpha) {
  const auto logits = noise({20, 30}, 1);
  expect_close(mapped("alpha_entmax", logits), alpha_entmax(logits, 1.5), 0);
  expect_close(mapped("alpha_entmax", logits, {{"alpha", 2.5}}), alpha_entmax(logits, 2.5), 0);
}

TEST(AlphaEntmaxMap, GrowsSparserWithAlpha) {
  const auto logits = 2 * noise({50, 20}, 2);
  int64_t before = -1;
  for (const double alpha : {1.01, 1.3, 1.6, 2.0, 3.0}) {
    const auto zeros = (mapped("alpha_entmax", logits, {{"alpha", alpha}}) == 0).sum();
    EXPECT_GT(zeros.item<int64_t>(), before);
    before = zeros.item<int64_t>();
  }
}

TEST(AlphaEntmaxMap, RejectsAnAlphaOfOne) {
  EXPECT_EQ(error_of([] {
              mapped("alpha_entmax", doubles({1}), {{"alpha", 1.0}});
            }),
            "here.alpha: must be a finite number above 1 (softmax is the limit at 1), got 1");
}

}  // namespace kelvin::alpha_entmax_test
