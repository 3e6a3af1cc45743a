#include "kelvin/train/loss.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

class CrossEntropyAtTemperature : public testing::TestWithParam<double> {};

TEST_P(CrossEntropyAtTemperature, HasTheGradientOfCentralDifferences) {
  const double temperature = GetParam();
  torch::manual_seed(0);
  // As large as the temperature: elsewhere the softmax is flat and there is no gradient to see.
  auto logits = temperature * torch::randn({3, 4}, torch::kFloat64);
  const auto labels = torch::tensor({1, 3, 0});
  auto leaf = logits.clone().requires_grad_();
  cross_entropy(leaf, labels, temperature).backward();
  const double step = 1e-5 * temperature;
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      auto up = logits.clone();
      auto down = logits.clone();
      up[i][j] += step;
      down[i][j] -= step;
      const double expected = (cross_entropy(up, labels, temperature).item<double>() -
                               cross_entropy(down, labels, temperature).item<double>()) /
                              (2 * step);
      EXPECT_NEAR(leaf.grad()[i][j].item<double>() * temperature, expected * temperature, 1e-9)
          << i << ", " << j;
    }
  }
}

TEST_P(CrossEntropyAtTemperature, HasTheGradientOfProbabilitiesMinusOneHotOverT) {
  const double temperature = GetParam();
  torch::manual_seed(1);
  auto logits = torch::randn({5, 6}, torch::kFloat64).requires_grad_();
  const auto labels = torch::tensor({1, 3, 0, 5, 5});
  cross_entropy(logits, labels, temperature).backward();
  const auto one_hot = torch::one_hot(labels, 6).to(torch::kFloat64);
  const auto expected =
      (torch::softmax(logits.detach() / temperature, 1) - one_hot) / (5 * temperature);
  EXPECT_TRUE(torch::allclose(logits.grad(), expected, 1e-10, 1e-14));
}

TEST_P(CrossEntropyAtTemperature, EqualsTorchsOfLogitsOverT) {
  const double temperature = GetParam();
  torch::manual_seed(2);
  const auto logits = 3 * torch::randn({20, 7}, torch::kFloat64);
  const auto labels = torch::randint(7, {20}, torch::kInt64);
  const double expected =
      torch::nn::functional::cross_entropy(logits / temperature, labels).item<double>();
  EXPECT_NEAR(cross_entropy(logits, labels, temperature).item<double>(), expected,
              1e-12 * (1 + expected));
}

TEST_P(CrossEntropyAtTemperature, OfEqualLogitsIsTheLogarithmOfTheClasses) {
  for (const int64_t classes : {2, 10, 100}) {
    const auto loss = cross_entropy(torch::full({3, classes}, 4.5, torch::kFloat64),
                                    torch::tensor({0, 1, 1}), GetParam());
    EXPECT_NEAR(loss.item<double>(), std::log(static_cast<double>(classes)), 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CrossEntropyAtTemperature, testing::Values(0.1, 1.0, 100.0));

TEST(CrossEntropy, StaysFiniteForHugeLogitsAtASmallTemperature) {
  auto logits = torch::tensor({{3e38F, 0.0F}, {0.0F, 3e38F}}).requires_grad_();
  const auto loss = cross_entropy(logits, torch::tensor({0, 1}), 0.01);
  loss.backward();
  EXPECT_EQ(loss.item<double>(), 0);
  EXPECT_TRUE(torch::isfinite(logits.grad()).all().item<bool>());
}

TEST(CrossEntropy, RejectsShapesThatDoNotFit) {
  EXPECT_EQ(error_of([] {
              cross_entropy(torch::zeros({3, 4}), torch::zeros({2}, torch::kInt64), 1);
            }),
            "cross_entropy: needs logits [samples, classes] and labels [samples], got [3, 4] and "
            "[2]");
  EXPECT_EQ(error_of([] { cross_entropy(torch::zeros({3}), torch::zeros({3}, torch::kInt64), 1); }),
            "cross_entropy: needs logits [samples, classes] and labels [samples], got [3] and [3]");
}

TEST(CrossEntropy, RejectsATemperatureThatIsNotAboveZero) {
  const auto logits = torch::zeros({1, 2});
  const auto labels = torch::zeros({1}, torch::kInt64);
  for (const double temperature : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    const auto message = error_of([&] { cross_entropy(logits, labels, temperature); });
    EXPECT_NE(message.find("temperature must be a finite number above 0"), std::string::npos)
        << message;
  }
}

}  // namespace
}  // namespace kelvin
