#include "kelvin/math/bootstrap.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

std::vector<double> column(const torch::Tensor& means, int64_t row) {
  const auto values = means.select(1, row).contiguous();
  return {values.data_ptr<double>(), values.data_ptr<double>() + values.numel()};
}

TEST(Bootstrap, MeansOfAConstantAreIt) {
  const auto means = bootstrap_means(torch::full({2, 7}, 0.25), {.resamples = 5});
  expect_close(means, torch::full({5, 2}, 0.25), 1e-15);
}

TEST(Bootstrap, SpreadsAsTheMeanOfThatManySamplesDoes) {
  // Shares of 0.3 in 1000 samples: a deviation of sqrt(0.3 * 0.7 / 1000).
  const auto values = (torch::arange(1000) < 300).unsqueeze(0);
  const auto means = bootstrap_means(values, {.resamples = 4000, .seed = 3});
  EXPECT_NEAR(means.mean().item<double>(), 0.3, 1e-3);
  EXPECT_NEAR(means.std().item<double>(), std::sqrt(0.3 * 0.7 / 1000), 5e-4);
  const auto interval = percentile_interval(column(means, 0));
  EXPECT_NEAR(interval.low, 0.3 - 1.96 * std::sqrt(0.3 * 0.7 / 1000), 2e-3);
  EXPECT_NEAR(interval.high, 0.3 + 1.96 * std::sqrt(0.3 * 0.7 / 1000), 2e-3);
}

TEST(Bootstrap, DrawsEverySampleEquallyOften) {
  const auto means = bootstrap_means(torch::eye(50), {.resamples = 20'000}).mean(0);
  // Five deviations: each sample is drawn 20 000 times on average, give or take 141.
  expect_close(means, torch::full({50}, 0.02), 5 * 0.02 / std::sqrt(20'000.));
}

TEST(Bootstrap, DrawsTheSameSamplesForAllRows) {
  const auto values = noise({1, 40}, 1);
  const auto means = bootstrap_means(torch::cat({values, 2 * values}), {.resamples = 20});
  expect_close(means.select(1, 1), 2 * means.select(1, 0), 1e-14);
  EXPECT_GT(means.select(1, 0).std().item<double>(), 0.01);
}

TEST(Bootstrap, IsThatOfItsSeed) {
  const auto values = noise({2, 30}, 1);
  const auto means = [&](uint64_t seed) {
    return bootstrap_means(values, {.resamples = 10, .seed = seed});
  };
  EXPECT_TRUE(torch::equal(means(1), means(1)));
  EXPECT_FALSE(torch::equal(means(1), means(2)));
}

TEST(Bootstrap, MoreResamplesBeginWithTheFewer) {
  // So many samples that they are drawn in several blocks.
  const auto values = noise({1, 1 << 20}, 1);
  const auto few = bootstrap_means(values, {.resamples = 3});
  const auto more = bootstrap_means(values, {.resamples = 7});
  expect_close(more.narrow(0, 0, 3), few, 1e-12);
}

TEST(Bootstrap, PercentilesAreThoseOfNumPy) {
  const auto numbers = noise({41}, 5);
  const auto expected = oracle(R"(
out["low"] = np.percentile(x["numbers"], 5)
out["high"] = np.percentile(x["numbers"], 95)
)",
                               {{"numbers", numbers}});
  const auto found = percentile_interval(
      {numbers.data_ptr<double>(), numbers.data_ptr<double>() + numbers.numel()}, 0.9);
  EXPECT_NEAR(found.low, expected.at("low").item<double>(), 1e-12);
  EXPECT_NEAR(found.high, expected.at("high").item<double>(), 1e-12);
}

TEST(Bootstrap, IntervalOfOneNumberIsIt) {
  const auto found = percentile_interval({2});
  EXPECT_EQ(found.low, 2);
  EXPECT_EQ(found.high, 2);
}

TEST(Bootstrap, RejectsWhatItCannotResample) {
  EXPECT_EQ(error_of([] {
              bootstrap_means(torch::zeros({2, 0}));
            }),
            "bootstrap_means: values must be [rows, samples], got [2, 0]");
  EXPECT_EQ(error_of([] {
              bootstrap_means(torch::zeros({2, 1}), {.resamples = 0});
            }),
            "bootstrap_means: resamples must be at least 1, got 0");
  EXPECT_EQ(error_of([] { percentile_interval({}); }),
            "percentile_interval: needs at least one number");
  EXPECT_EQ(error_of([] { percentile_interval({1}, 1); }),
            "percentile_interval: level must be in (0, 1), got 1");
}

}  // namespace
}  // namespace kelvin
