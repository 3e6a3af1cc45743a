#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kelvin/measures/measure.h"

namespace kelvin::mean_entropy_test {

double mean_entropy(const torch::Tensor& logits) {
  Settings settings("measure.mean_entropy", {});
  auto measure = measures().find("mean_entropy").make({.temperature = 2}, settings);
  Record record;
  record.logits = logits;
  record.labels = torch::zeros({logits.size(0)}, torch::kInt64);
  measure->update(record);
  return measure->compute().at(0).value;
}

TEST(MeanEntropy, IsOneForEqualLogits) {
  EXPECT_NEAR(mean_entropy(torch::full({8, 5}, 3.0)), 1, 1e-12);
}

TEST(MeanEntropy, IsZeroForCertainty) { EXPECT_NEAR(mean_entropy(torch::eye(5) * 1e4), 0, 1e-12); }

TEST(MeanEntropy, OfTwoLogitsIsTheBinaryEntropyAtTheTemperature) {
  const double p = 1 / (1 + std::exp(-0.5));  // logits 1 and 0 at T = 2
  const double entropy = -(p * std::log(p) + (1 - p) * std::log(1 - p)) / std::log(2);
  EXPECT_NEAR(mean_entropy(torch::tensor({{1.0, 0.0}})), entropy, 1e-12);
}

}  // namespace kelvin::mean_entropy_test
