#include "kelvin/math/tempered_logs.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "kelvin/math/softmax.h"
#include "tests/support/gradients.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

TEST(TemperedLogs, AreThoseOfTheSoftmaxAtATemperature) {
  const auto logits = 10 * noise({20, 7}, 1);
  for (const double temperature : {0.01, 1., 100.}) {
    expect_close(tempered_logs(logits, torch::tensor(temperature, torch::kFloat64)),
                 log_softmax(logits, {.temperature = temperature}), 1e-9);
  }
}

TEST(TemperedLogs, HaveTheGradientsOfCentralDifferences) {
  const auto logits = noise({3, 4}, 2);
  const auto temperature = torch::tensor(0.7, torch::kFloat64);
  expect_gradient([&](const torch::Tensor& at) { return tempered_logs(at, temperature); }, logits);
  expect_gradient([&](const torch::Tensor& at) { return tempered_logs(logits, at); }, temperature);
}

TEST(TemperedLogs, HaveFiniteGradientsAtTheLargestLogits) {
  for (const double temperature : {1e-3, 1e4}) {
    auto logits = torch::tensor({{3e38F, -3e38F}}).requires_grad_();
    auto learnt = torch::tensor(temperature).requires_grad_();
    tempered_logs(logits, learnt).exp().sum().backward();
    EXPECT_TRUE(torch::isfinite(logits.grad()).all().item<bool>()) << temperature;
    EXPECT_TRUE(torch::isfinite(learnt.grad()).all().item<bool>()) << temperature;
  }
}

TEST(TemperedLogs, DescribeALoss) {
  const auto logits = noise({4, 5}, 3);
  const auto labels = labels_of({0, 1, 2, 3});
  const auto temperature = torch::tensor(2., torch::kFloat64);
  const auto logs = tempered_logs(logits, temperature);
  const auto values = described_loss(-logs.gather(1, labels.unsqueeze(1)).squeeze(1), logs, logits);
  const auto expected = tempered_cross_entropy(logits, labels, temperature);
  expect_close(values.loss, expected.loss, 1e-14);
  expect_close(values.sample_losses, expected.sample_losses, 1e-14);
  expect_close(values.entropies, expected.entropies, 1e-14);
  EXPECT_TRUE(values.predictions.equal(expected.predictions));
}

TEST(TemperedLogs, OfHalfPrecisionAreSingle) {
  EXPECT_EQ(tempered_logs(torch::zeros({1, 2}, torch::kHalf), torch::tensor(1.)).scalar_type(),
            torch::kFloat32);
}

}  // namespace
}  // namespace kelvin
