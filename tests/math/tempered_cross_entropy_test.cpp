#include "kelvin/math/tempered_cross_entropy.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace kelvin {
namespace {

TEST(TemperedCrossEntropy, IsTorchsOfLogitsOverTheTemperature) {
  torch::manual_seed(0);
  const auto logits = torch::randn({8, 5}, torch::kFloat64);
  const auto labels = torch::randint(5, {8}, torch::kInt64);
  const auto values = tempered_cross_entropy(logits, labels, torch::tensor(3.0, torch::kFloat64));
  EXPECT_NEAR(values.loss.item<double>(),
              torch::nn::functional::cross_entropy(logits / 3, labels).item<double>(), 1e-12);
}

}  // namespace
}  // namespace kelvin
