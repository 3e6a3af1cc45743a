#include "kelvin/ops/softmax.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/gradients.h"
#include "tests/support/tensors.h"

namespace kelvin::softmax_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Softmax, OfLogarithmsAreTheirShares) {
  const auto logits = doubles({0, std::log(2), std::log(5)});
  const auto shares = doubles({1. / 8, 2. / 8, 5. / 8});
  expect_close(softmax(logits), shares, 1e-15);
  expect_close(log_softmax(logits), shares.log(), 1e-15);
}

TEST(Softmax, DividesTheLogitsByTheTemperature) {
  const auto logits = doubles({0, 2 * std::log(3)});
  expect_close(softmax(logits, {.temperature = 2}), doubles({0.25, 0.75}), 1e-15);
  expect_close(log_softmax(logits, {.temperature = 0.5}), doubles({1. / 82, 81. / 82}).log(),
               1e-15);
  const auto many = noise({5, 4}, 0);
  for (const double temperature : {0.01, 0.7, 30.0}) {
    const auto divided = many / temperature;
    expect_close(softmax(many, {.temperature = temperature}), softmax(divided), 1e-14);
    expect_close(log_softmax(many, {.temperature = temperature}), log_softmax(divided), 1e-12);
  }
}

TEST(Softmax, WorksOverTheLastDimension) {
  const auto logits = noise({2, 3, 4}, 1);
  const auto probabilities = softmax(logits, {.temperature = 2});
  expect_close(probabilities.sum(-1), torch::ones({2, 3}, torch::kFloat64), 1e-14);
  expect_close(probabilities[1][2], softmax(logits[1][2], {.temperature = 2}), 1e-15);
}

TEST(Softmax, IgnoresAConstantAddedToTheLogits) {
  const auto logits = noise({5, 4}, 2);
  expect_close(softmax(logits + 17, {.temperature = 0.3}), softmax(logits, {.temperature = 0.3}),
               1e-12);
}

TEST(Softmax, OfASingleClassIsOne) {
  expect_close(softmax(doubles({-7})), doubles({1}), 0);
  expect_close(log_softmax(doubles({-7})), doubles({0}), 0);
}

TEST(Softmax, SurvivesHugeLogitsAtATinyTemperature) {
  const auto logits = torch::tensor({1e6F, 0.F, -1e6F});
  const SoftmaxOptions options{.temperature = 1e-3};
  expect_close(softmax(logits, options), doubles({1, 0, 0}), 0);
  expect_close(log_softmax(logits, options) / 1e9, doubles({0, -1, -2}), 1e-6);
  expect_close(softmax(torch::full({4}, 1e6F), options), torch::full({4}, 0.25), 1e-7);
  // Divided first, these would be infinite in single precision.
  expect_close(softmax(torch::tensor({1e38F, 1e38F}), options), doubles({0.5, 0.5}), 0);
}

TEST(Softmax, GradientIsThatOfCentralDifferences) {
  for (const double temperature : {0.5, 1.0, 4.0}) {
    SCOPED_TRACE(temperature);
    const SoftmaxOptions options{.temperature = temperature};
    const auto at = noise({2, 5}, 3);
    expect_gradient([&](const torch::Tensor& logits) { return softmax(logits, options); }, at);
    expect_gradient([&](const torch::Tensor& logits) { return log_softmax(logits, options); }, at);
  }
}

TEST(Softmax, RejectsATemperatureThatIsNotAFiniteNumberAboveZero) {
  const auto logits = doubles({1, 2});
  for (const auto& [temperature, shown] :
       {std::pair{0.0, "0"}, {-1.0, "-1"}, {kNan, "nan"}, {kInfinity, "inf"}}) {
    const SoftmaxOptions options{.temperature = temperature};
    const auto message = std::string(": temperature must be a finite number above 0, got ") + shown;
    EXPECT_EQ(error_of([&] { softmax(logits, options); }), "softmax" + message);
    EXPECT_EQ(error_of([&] { log_softmax(logits, options); }), "log_softmax" + message);
    EXPECT_EQ(error_of([&] { check_temperature("here", options.temperature); }), "here" + message);
  }
}

TEST(Softmax, RejectsLogitsWithoutClasses) {
  EXPECT_EQ(error_of([] { softmax(torch::tensor(1.0)); }),
            "softmax: logits must be [..., classes], got []");
  EXPECT_EQ(error_of([] {
              log_softmax(torch::zeros({2, 0}));
            }),
            "log_softmax: logits must be [..., classes], got [2, 0]");
}

}  // namespace kelvin::softmax_test
