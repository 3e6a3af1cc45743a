#include <gtest/gtest.h>
#include <torch/torch.h>
#include <torch/types.h>

#include <cmath>

#include "kelvin/ops/cross_entropy.h"
#include "kelvin/ops/softmax.h"
#include "tests/support/errors.h"
#include "tests/support/gradients.h"
#include "tests/support/tensors.h"

namespace kelvin::loss_arguments_test {

const torch::Tensor& one() {
  static const auto temperature = torch::tensor(1.);
  return temperature;
}

std::string refusal(const torch::Tensor& logits, const torch::Tensor& labels,
                    const torch::Tensor& temperature = one()) {
  return error_of([&] { check_loss_arguments("loss", logits, labels, temperature); });
}

TEST(LossArguments, AreFineIfTheyFit) {
  check_loss_arguments("loss", torch::zeros({2, 3}), labels_of({0, 2}), one());
  check_loss_arguments("loss", torch::zeros({2, 3}, torch::kHalf),
                       labels_of({0, 2}).to(torch::kUInt8), torch::tensor({2.}, torch::kFloat64));
}

TEST(LossArguments, MustHaveShapesThatFit) {
  EXPECT_EQ(refusal(torch::zeros({3, 4}), labels_of({0, 1})),
            "loss: needs logits [samples, classes] and labels [samples], got [3, 4] and [2]");
  EXPECT_EQ(refusal(torch::zeros({3}), labels_of({0, 1, 2})),
            "loss: needs logits [samples, classes] and labels [samples], got [3] and [3]");
  EXPECT_EQ(refusal(torch::zeros({0, 4}), labels_of({})),
            "loss: needs at least one sample and one class, got [0, 4]");
}

TEST(LossArguments, MustHaveTypesThatFit) {
  EXPECT_EQ(refusal(torch::zeros({1, 2}, torch::kInt64), labels_of({0})),
            "loss: logits must be floating-point numbers, are Long");
  EXPECT_EQ(refusal(torch::zeros({1, 2}), torch::zeros({1})),
            "loss: labels must be whole numbers, are Float");
}

TEST(LossArguments, MustHaveLabelsOfAClass) {
  EXPECT_EQ(refusal(torch::zeros({2, 3}), labels_of({0, 3})),
            "loss: labels must be in [0, 3), got 3 for sample 1");
  EXPECT_EQ(refusal(torch::zeros({2, 3}), labels_of({-1, 0})),
            "loss: labels must be in [0, 3), got -1 for sample 0");
}

TEST(LossArguments, MustHaveATemperatureAboveZero) {
  for (const double temperature : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    const auto message = refusal(torch::zeros({1, 2}), labels_of({0}), torch::tensor(temperature));
    EXPECT_TRUE(message.starts_with("loss: temperature must be a finite number above 0, got "))
        << message;
  }
  EXPECT_EQ(refusal(torch::zeros({1, 2}), labels_of({0}), torch::ones({2})),
            "loss: the temperature must be one floating-point number, is Float [2]");
}

}  // namespace kelvin::loss_arguments_test
