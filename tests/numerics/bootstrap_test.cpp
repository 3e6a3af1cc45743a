#include "kelvin/numerics/bootstrap.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::bootstrap_test {

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

std::vector<double> list_of(const torch::Tensor& tensor) {
  const auto values = tensor.to(torch::kFloat64).contiguous();
  return {values.data_ptr<double>(), values.data_ptr<double>() + values.numel()};
}

DetectionCurve curve_of(const torch::Tensor& id, const torch::Tensor& ood) {
  return {list_of(id), list_of(ood)};
}

TEST(DetectionIntervals, OfTheAurocAreThoseOfDeLong) {
  const auto id = ((noise({80}, 0) + 1) * 4).round() / 4;  // some tie
  const auto ood = (noise({50}, 1) * 4).round() / 4;
  const auto expected = oracle(R"(
wins = (x["id"][:, None] > x["ood"]) + 0.5 * (x["id"][:, None] == x["ood"])
variance = wins.mean(1).var(ddof=1) / wins.shape[0] + wins.mean(0).var(ddof=1) / wins.shape[1]
from scipy.stats import norm
out["interval"] = wins.mean() + norm.ppf([0.025, 0.975]) * np.sqrt(variance)
)",
                               {{"id", id}, {"ood", ood}});
  const auto found = detection_intervals(curve_of(id, ood), {.resamples = 10});
  expect_close(doubles({found.auroc.low, found.auroc.high}), expected.at("interval"), 1e-12);
}

TEST(DetectionIntervals, DoNotLeaveTheRangeOfTheirNumbers) {
  const auto found = detection_intervals(curve_of(doubles({1, 2, 3, 9}), doubles({0, 2})));
  EXPECT_EQ(found.auroc.high, 1);
  EXPECT_GT(found.auroc.low, 0);
  const auto perfect = detection_intervals(curve_of(doubles({3, 4}), doubles({1, 2})));
  EXPECT_EQ(perfect.auroc.low, 1);
  EXPECT_EQ(perfect.fpr95_id.high, 0);
}

// Drawn again and again from the same two populations, the numbers of new samples lie in the
// interval of old ones about as often as the interval says.
TEST(DetectionIntervals, HoldWhatTheTrueValueIsAboutAsOftenAsTheySay) {
  constexpr int64_t kRounds = 60;
  const double truth = 0.5 * std::erfc(-0.5);  // of two normals whose means are 1 apart
  const auto large = curve_of(noise({200'000}, 1000) + 1, noise({200'000}, 1001)).quality();
  int64_t holds_auroc = 0;
  int64_t holds_fpr = 0;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const auto curve = curve_of(noise({300}, 2 * round) + 1, noise({300}, 2 * round + 1));
    const auto found = detection_intervals(curve, {.resamples = 200, .seed = round});
    holds_auroc += static_cast<int64_t>(found.auroc.low <= truth && truth <= found.auroc.high);
    holds_fpr += static_cast<int64_t>(found.fpr95_id.low <= large.fpr95_id &&
                                      large.fpr95_id <= found.fpr95_id.high);
  }
  EXPECT_GE(holds_auroc, 52);
  EXPECT_GE(holds_fpr, 50);
}

TEST(DetectionIntervals, NarrowWithTheSquareRootOfTheSamples) {
  const auto width = [](int64_t samples) {
    const auto found = detection_intervals(curve_of(noise({samples}, 3) + 1, noise({samples}, 4)),
                                           {.resamples = 400});
    return found.aupr_in.high - found.aupr_in.low;
  };
  EXPECT_NEAR(width(400) / width(6400), 4, 1.2);
}

TEST(DetectionIntervals, DependOnTheSeedAlone) {
  const auto curve = curve_of(noise({90}, 5) + 1, noise({70}, 6));
  const auto first = detection_intervals(curve, {.resamples = 50, .seed = 1});
  const auto threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto again = detection_intervals(curve, {.resamples = 50, .seed = 1});
  at::set_num_threads(threads);
  EXPECT_EQ(first.fpr95_ood.low, again.fpr95_ood.low);
  EXPECT_EQ(first.aupr_out.high, again.aupr_out.high);
  const auto other = detection_intervals(curve, {.resamples = 50, .seed = 2});
  EXPECT_NE(first.aupr_out.high, other.aupr_out.high);
}

TEST(DetectionIntervals, RejectNoResamples) {
  const auto curve = curve_of(doubles({1}), doubles({0}));
  EXPECT_EQ(error_of([&] { detection_intervals(curve, {.resamples = 0}); }),
            "detection_intervals: resamples must be at least 1, got 0");
}

}  // namespace kelvin::bootstrap_test
