#include "kelvin/measures/detectors/activation_shaping.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/detectors.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::activation_shaping_test {

int64_t kept(int64_t dims, double percentile) {
  const auto top = top_activations(noise({3, dims}, 0), percentile);
  EXPECT_TRUE((top.is_kept.sum(1) == top.count).all().item<bool>());
  return top.count;
}

TEST(TopActivations, AreAsManyAsThePercentileLeaves) {
  EXPECT_EQ(kept(64, 0), 64);
  EXPECT_EQ(kept(64, 0.65), 22);  // 41.6 are removed
  EXPECT_EQ(kept(64, 0.85), 10);  // 54.4 are removed
  EXPECT_EQ(kept(10, 0.65), 4);   // 6.5: to the even number
  EXPECT_EQ(kept(10, 0.75), 2);   // 7.5: likewise
}

TEST(TopActivations, AreNeverNone) {
  EXPECT_EQ(kept(1, 0.65), 1);
  EXPECT_EQ(kept(3, 0.999), 1);
}

TEST(TopActivations, AreTheLargestOfEachSample) {
  const auto features = torch::tensor({{1., 4., 2., 3.}, {-1., -4., -2., -3.}}, torch::kFloat64);
  expect_close(pruned(features, top_activations(features, 0.5)),
               torch::tensor({{0., 4., 0., 3.}, {-1., 0., -2., 0.}}, torch::kFloat64), 0);
}

TEST(TopActivations, AreTheFirstOfEqualOnes) {
  const auto features = torch::zeros({2, 100}, torch::kFloat64);
  const auto top = top_activations(features, 0.7);
  EXPECT_TRUE(top.is_kept.narrow(1, 0, 30).all().item<bool>());
  EXPECT_FALSE(top.is_kept.narrow(1, 30, 70).any().item<bool>());
}

torch::Tensor sharpened(const torch::Tensor& features, double percentile) {
  return sharpening(features, top_activations(features, percentile)).squeeze(1);
}

TEST(Sharpening, ComparesTheSumOfAllWithThatOfTheKept) {
  const auto features = torch::tensor({{1., 4., 2., 3.}, {0., 0., 5., 0.}}, torch::kFloat64);
  expect_close(sharpened(features, 0.5), doubles({std::exp(10. / 7), std::exp(1)}), 1e-14);
  expect_close(sharpened(features, 0), doubles({std::exp(1), std::exp(1)}), 1e-14);
}

TEST(Sharpening, IsZeroWhereTheKeptSumToNoMoreThanZero) {
  const auto features =
      torch::tensor({{0., 0., 0.}, {-1., -2., -3.}, {0., -2., -3.}}, torch::kFloat64);
  expect_close(sharpened(features, 0.65), doubles({0, 0, 0}), 0);
}

TEST(Sharpening, TendsToZeroWhereTheKeptVanishBesideNegativeOnes) {
  const auto features = torch::tensor(
      {{1., -1., -1.}, {0.1, -1., -1.}, {1e-3, -1., -1.}, {0., -1., -1.}}, torch::kFloat64);
  const auto factors = sharpened(features, 0.65);
  EXPECT_TRUE((factors.diff() <= 0).all().item<bool>()) << factors;
  EXPECT_NEAR(factors[2].item<double>(), 0, 1e-100);
}

TEST(ShapingDetector, HandsFeaturesToTheShapingAndTakesTheEnergy) {
  Settings settings("detector.negated", {});
  const ActivationShaping negation = {
      .name = "negated",
      .shaping = "negated",
      .percentile = 0.5,
      .shaped = [](const torch::Tensor& features, const TopActivations& top) {
        EXPECT_EQ(top.count, 2);
        return -features;
      }};
  const auto detector = shaping_detector(negation, {.temperature = 3}, settings);
  const auto features = noise({5, 4}, 1);
  const auto weight = noise({6, 4}, 2);
  const auto bias = noise({6}, 3);
  const auto record = features_record(features, weight, bias);
  expect_close(fitted_scores(*detector, record, record),
               unfitted_scores("energy", features_record(-features, weight, bias), {}, 3), 1e-13);
  EXPECT_EQ(detector->definition()["shaping"], "negated");
  EXPECT_EQ(detector->definition()["percentile"], 0.5);
  EXPECT_EQ(detector->definition()["temperature"], 3);
}

TEST(ShapingDetector, RejectsShapedFeaturesThatOverflow) {
  // All equal and one kept: exp(1000).
  const auto features = torch::ones({1, 1000}, torch::kFloat64);
  const auto record = features_record(features, torch::ones({2, 1000}, torch::kFloat64),
                                      torch::zeros({2}, torch::kFloat64));
  const auto detector = make_detector("scale", {{"percentile", 0.999}});
  detector->fit(record);
  EXPECT_EQ(error_of([&] { detector->score(record); }),
            "scale: shaped features must be finite, overflow for a sample at a percentile of "
            "0.999; a lower one keeps more activations");
}

}  // namespace kelvin::activation_shaping_test
