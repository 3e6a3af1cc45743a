#include "kelvin/numerics/temperature_scaling.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <string>

#include "kelvin/ops/softmax.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::temperature_scaling_test {

// What the certificate has to show of a temperature that was found.
void expect_certified(const FittedTemperature& fitted) {
  ASSERT_EQ(fitted.status, TemperatureStatus::found);
  ASSERT_TRUE(fitted.converged);
  ASSERT_TRUE(fitted.temperature.has_value());
  const double beta = 1 / *fitted.temperature;
  EXPECT_TRUE(std::isfinite(beta) && beta > 0);
  EXPECT_LT(fitted.low_slope, 0);
  EXPECT_GE(fitted.high_slope, 0);
  EXPECT_LE(fitted.low, beta * (1 + 1e-15));
  EXPECT_GE(fitted.high, beta * (1 - 1e-15));
  EXPECT_LE(fitted.high / fitted.low - 1, 1.0001e-10);
}

void expect_none(const FittedTemperature& fitted, TemperatureStatus status) {
  EXPECT_EQ(fitted.status, status);
  EXPECT_FALSE(fitted.temperature.has_value());
  EXPECT_FALSE(fitted.converged);
}

// Slope of the mean NLL in beta, as its definition has it.
double slope_at(double beta, const torch::Tensor& logits, const torch::Tensor& labels) {
  const auto shares = torch::softmax(logits * beta, 1);
  const auto own = logits.gather(1, labels.unsqueeze(1)).squeeze(1);
  return ((shares * logits).sum(1) - own).mean().item<double>();
}

TEST(TemperatureScaling, RecoversAKnownTemperature) {
  const auto logits = 3 * noise({200, 10}, 0);
  for (const double temperature : {1e-2, 0.1, 0.5, 1., 2., 10., 100., 1e3, 1e6}) {
    SCOPED_TRACE(temperature);
    const auto shares = softmax(logits, {.temperature = temperature});
    const auto fitted = fit_temperature_to_probabilities(logits, shares);
    expect_certified(fitted);
    EXPECT_NEAR(*fitted.temperature / temperature, 1, 1e-6);
    EXPECT_LE(fitted.iterations, 30);
  }
}

// Seven, two and one of ten samples with probabilities 0.7, 0.2 and 0.1.
TEST(TemperatureScaling, RecoversItFromLabelsWhoseFrequenciesFit) {
  const auto row = doubles({0.7, 0.2, 0.1}).log();
  const auto labels = labels_of({0, 0, 0, 0, 0, 0, 0, 1, 1, 2});
  for (const double temperature : {1e-2, 1., 37., 1e3}) {
    const auto logits = (row * temperature).expand({10, 3}) + 5 * noise({10, 1}, 1);
    const auto fitted = fit_temperature(logits, labels);
    expect_certified(fitted);
    EXPECT_NEAR(*fitted.temperature / temperature, 1, 1e-9);
    EXPECT_NEAR(fitted.nll, -(0.7 * row[0] + 0.2 * row[1] + 0.1 * row[2]).item<double>(), 1e-12);
  }
}

TEST(TemperatureScaling, IsThatOfSciPy) {
  const auto logits = 5 * noise({400, 6}, 2);
  const auto labels = (logits + 8 * noise({400, 6}, 3)).argmax(1);
  const auto expected = oracle(R"(
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
m, y = x["logits"], x["labels"]
def nll(u):
    z = m * np.exp(-u)
    return np.mean(logsumexp(z, axis=1) - z[np.arange(len(y)), y])
found = minimize_scalar(nll, bounds=(-10, 10), method="bounded", options={"xatol": 1e-10})
out["temperature"], out["nll"] = np.exp(found.x), found.fun
)",
                               {{"logits", logits}, {"labels", labels}});
  const auto fitted = fit_temperature(logits, labels);
  expect_certified(fitted);
  // The minimum of a function is known to the root of its precision only.
  EXPECT_NEAR(*fitted.temperature / expected.at("temperature").item<double>(), 1, 1e-6);
  EXPECT_NEAR(fitted.nll, expected.at("nll").item<double>(), 1e-12);
  EXPECT_LT(std::abs(slope_at(1 / *fitted.temperature, logits, labels)), 1e-9);
}

TEST(TemperatureScaling, SlopesOfTheCertificateAreThoseOfTheLikelihood) {
  const auto logits = 20 * noise({100, 4}, 4);
  const auto labels = (logits + 30 * noise({100, 4}, 5)).argmax(1);
  const auto fitted = fit_temperature(logits, labels, {.tolerance = 1e-2});
  ASSERT_TRUE(fitted.converged);
  EXPECT_NEAR(fitted.low_slope, slope_at(fitted.low, logits, labels), 1e-11);
  EXPECT_NEAR(fitted.high_slope, slope_at(fitted.high, logits, labels), 1e-11);
}

TEST(TemperatureScaling, ScalesWithTheLogitsAndIgnoresAConstantPerSample) {
  const auto logits = 2 * noise({300, 5}, 6);
  const auto labels = (logits + 3 * noise({300, 5}, 7)).argmax(1);
  const double expected = *fit_temperature(logits, labels).temperature;
  for (const double factor : {1e-6, 1e-2, 1e3, 1e6}) {
    const auto fitted = fit_temperature(factor * (logits + 50 * noise({300, 1}, 8)), labels);
    expect_certified(fitted);
    EXPECT_NEAR(*fitted.temperature / factor / expected, 1, 1e-9) << factor;
  }
}

TEST(TemperatureScaling, TakesLabelsAsSharesOfOne) {
  const auto logits = noise({60, 4}, 9);
  const auto labels = (logits + noise({60, 4}, 10)).argmax(1);
  const auto shares = torch::zeros({60, 4}, torch::kFloat64).scatter(1, labels.unsqueeze(1), 1.);
  EXPECT_DOUBLE_EQ(*fit_temperature_to_probabilities(logits, shares).temperature,
                   *fit_temperature(logits, labels).temperature);
}

TEST(TemperatureScaling, OfSinglePrecisionLogitsIsThatOfTheirValues) {
  const auto logits = (4 * noise({100, 5}, 11)).to(torch::kFloat32);
  const auto labels = (logits + 6 * noise({100, 5}, 12)).argmax(1);
  EXPECT_EQ(*fit_temperature(logits, labels).temperature,
            *fit_temperature(logits.to(torch::kFloat64), labels).temperature);
}

TEST(TemperatureScaling, HasNoneIfEverySampleIsRight) {
  const auto logits = noise({50, 4}, 13);
  const auto fitted = fit_temperature(logits, logits.argmax(1));
  expect_none(fitted, TemperatureStatus::unbounded);
  EXPECT_LT(fitted.low_slope, 0);
  EXPECT_LE(fitted.high_slope, 0);
  // A tie is no error either: no temperature makes one of the two larger.
  expect_none(fit_temperature(torch::tensor({{1.0, 1.0, 0.0}}, torch::kFloat64), labels_of({1})),
              TemperatureStatus::unbounded);
}

TEST(TemperatureScaling, HasOneIfASingleSampleIsWrongByLittle) {
  auto logits = torch::zeros({1000, 2}, torch::kFloat64);
  logits.select(1, 0).fill_(1);
  logits[999][1] = 1 + 1e-3;
  const auto fitted = fit_temperature(logits, torch::zeros({1000}, torch::kInt64));
  expect_certified(fitted);
  // 999 e^-beta = 1e-3 / 2 or nearly so.
  EXPECT_NEAR(1 / *fitted.temperature, std::log(999 * 2e3), 0.1);
}

TEST(TemperatureScaling, HasNoneIfLabelsAreNotBetterThanChance) {
  const auto logits = noise({50, 4}, 14);
  // The lowest logit is the label.
  const auto fitted = fit_temperature(logits, logits.argmin(1));
  expect_none(fitted, TemperatureStatus::at_chance);
  EXPECT_GT(fitted.low_slope, 0);
  EXPECT_GT(fitted.high_slope, 0);
  // Every label once for the same logits: exactly chance, whatever rounding says.
  const auto copies = logits.repeat_interleave(4, 0);
  const auto balanced = fit_temperature(copies, torch::arange(200) % 4);
  expect_none(balanced, TemperatureStatus::at_chance);
  EXPECT_NEAR(balanced.low_slope, 0, 1e-14);
}

TEST(TemperatureScaling, HasNoneIfLogitsSayNothing) {
  const auto fitted = fit_temperature(5 * noise({8, 1}, 15).expand({8, 3}), torch::arange(8) % 3);
  expect_none(fitted, TemperatureStatus::flat);
  EXPECT_EQ(fitted.low_slope, 0);
  EXPECT_EQ(fitted.high_slope, 0);
  expect_none(fit_temperature(noise({8, 1}, 16), torch::zeros({8}, torch::kInt64)),
              TemperatureStatus::flat);
}

TEST(TemperatureScaling, HandsOutNoTemperatureThatHasNotConverged) {
  const auto logits = noise({50, 4}, 17);
  const auto labels = (logits + noise({50, 4}, 18)).argmax(1);
  for (const int64_t iterations : {0, 1, 2, 4}) {
    const auto fitted = fit_temperature(logits, labels, {.max_iterations = iterations});
    EXPECT_FALSE(fitted.converged);
    EXPECT_FALSE(fitted.temperature.has_value());
  }
}

// More logits than are looked at at a time.
TEST(TemperatureScaling, GoesOverAllSamples) {
  const auto logits = 3 * noise({700, 800}, 19);
  const auto fitted = fit_temperature_to_probabilities(logits, softmax(logits, {.temperature = 2}));
  expect_certified(fitted);
  EXPECT_NEAR(*fitted.temperature, 2, 1e-9);
}

TEST(TemperatureScaling, NamesItsStatus) {
  EXPECT_STREQ(name_of(TemperatureStatus::found), "found");
  EXPECT_STREQ(name_of(TemperatureStatus::unbounded), "unbounded");
  EXPECT_STREQ(name_of(TemperatureStatus::at_chance), "at_chance");
  EXPECT_STREQ(name_of(TemperatureStatus::flat), "flat");
}

TEST(TemperatureScaling, RejectsWhatItCannotUse) {
  const auto logits = torch::zeros({2, 3}, torch::kFloat64);
  EXPECT_EQ(error_of([&] {
              fit_temperature(logits / 0, labels_of({0, 1}));
            }),
            "fit_temperature: logits must be finite, have a NaN or an infinity");
  EXPECT_EQ(error_of([&] {
              fit_temperature(logits, labels_of({0, 3}));
            }),
            "fit_temperature: labels must be in [0, 3), got 3 for sample 1");
  EXPECT_EQ(error_of([&] {
              fit_temperature(torch::tensor({{1e308, -1e308}}, torch::kFloat64), labels_of({1}));
            }),
            "fit_temperature: logits of a sample differ by more than double precision can hold");
  EXPECT_EQ(error_of([&] {
              fit_temperature_to_probabilities(logits, torch::ones({2, 3}));
            }),
            "fit_temperature: shares must not be below 0 and have sums of 1");
  EXPECT_EQ(error_of([&] { fit_temperature_to_probabilities(logits, logits / 0); }),
            "fit_temperature: shares must not be below 0 and have sums of 1");
  EXPECT_EQ(error_of([&] {
              fit_temperature_to_probabilities(logits, torch::ones({2, 2}));
            }),
            "fit_temperature: shares must be floating [2, 3], got [2, 2]");
  EXPECT_EQ(error_of([&] {
              fit_temperature_to_probabilities(torch::zeros({0, 3}), logits);
            }),
            "fit_temperature: logits must be floating [samples, classes], at least one of each, "
            "got [0, 3]");
}

}  // namespace kelvin::temperature_scaling_test
