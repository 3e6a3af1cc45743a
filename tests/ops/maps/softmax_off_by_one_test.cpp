#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/simplex.h"
#include "tests/support/tensors.h"

namespace kelvin::softmax_off_by_one_test {

TEST(SoftmaxOffByOne, HasOneMoreInItsDenominator) {
  expect_close(mapped("softmax_off_by_one", doubles({std::log(2), 0, std::log(4)})),
               doubles({2, 1, 4}) / 8, 1e-15);
  expect_close(mapped("softmax_off_by_one", doubles({std::log(2), 0}), {{"sink", std::log(7)}}),
               doubles({2, 1}) / 10, 1e-15);
}

TEST(SoftmaxOffByOne, IsSoftmaxOfHighLogitsAndNothingOfLowOnes) {
  const auto logits = noise({4, 7}, 1);
  expect_close(mapped("softmax_off_by_one", logits + 100), torch::softmax(logits, -1), 1e-14);
  EXPECT_LT(mapped("softmax_off_by_one", logits - 100).max().item<double>(), 1e-40);
  for (const double huge : {1e6, 1e300}) {
    expect_close(mapped("softmax_off_by_one", doubles({huge, -huge})), doubles({1, 0}), 0);
    expect_close(mapped("softmax_off_by_one", doubles({-huge, -huge})), doubles({0, 0}), 0);
  }
}

TEST(SoftmaxOffByOne, RejectsASinkThatIsNotFinite) {
  EXPECT_EQ(error_of([] {
              mapped("softmax_off_by_one", doubles({1}), {{"sink", std::nan("")}});
            }),
            "here.sink: must be a finite number, got nan");
}

}  // namespace kelvin::softmax_off_by_one_test
