#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/detectors.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::energy_test {

torch::Tensor energies(const torch::Tensor& logits, double temperature = 1) {
  return unfitted_scores("energy", logits_record(logits), {}, temperature);
}

TEST(Energy, IsTheLogarithmOfTheSumOfPowers) {
  const auto logits = torch::stack({doubles({0, std::log(2), std::log(5)}), doubles({1, 1, 1})});
  expect_close(energies(logits), doubles({std::log(8), 1 + std::log(3)}), 1e-14);
}

TEST(Energy, DividesByTheTrainingTemperatureAndMultipliesByIt) {
  const auto logits = doubles({0, 2 * std::log(3)}).unsqueeze(0);
  expect_close(energies(logits, 2), doubles({2 * std::log(4)}), 1e-14);
}

TEST(Energy, IsThatOfSciPy) {
  const auto logits = 6 * noise({50, 11}, 0);
  const auto expected = oracle(R"(
from scipy.special import logsumexp
for t in (.25, 1, 100):
    out[str(t)] = t * logsumexp(x["logits"] / t, axis=1)
)",
                               {{"logits", logits}});
  expect_close(energies(logits, 0.25), expected.at("0.25"), 1e-11);
  expect_close(energies(logits), expected.at("1"), 1e-11);
  expect_ratio(energies(logits, 100), expected.at("100"), 1e-12);
}

TEST(Energy, TendsToTheLargestLogitAtATinyTemperature) {
  const auto logits = torch::tensor({{1e6F, 0.F}, {-1e6F, -1e6F}});
  expect_close(energies(logits, 1e-3), doubles({1e6, -1e6 + 1e-3 * std::log(2)}), 1e-9);
}

TEST(Energy, OfASingleClassIsItsLogit) {
  expect_close(energies(torch::tensor({{3.}, {-2.}}), 7), doubles({3, -2}), 0);
}

TEST(Energy, RejectsATemperatureThatIsNotAboveZero) {
  EXPECT_EQ(error_of([] {
              energies(torch::ones({1, 2}), -1);
            }),
            "energy: temperature must be a finite number above 0, got -1");
}

}  // namespace kelvin::energy_test
