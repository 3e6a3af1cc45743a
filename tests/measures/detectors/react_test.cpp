#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/detectors.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::react_test {

const torch::Tensor& identity() {
  static const auto two_by_two = torch::eye(2, torch::kFloat64);
  return two_by_two;
}

Record plain(const torch::Tensor& features) {
  return features_record(features, identity(), torch::zeros({2}, torch::kFloat64));
}

torch::Tensor react_scores(const torch::Tensor& train, const torch::Tensor& test,
                           const Values& values = {}, double temperature = 1) {
  return fitted_scores(*make_detector("react", values, temperature), plain(train), plain(test));
}

TEST(React, ClipsActivationsAtAQuantileOfTraining) {
  // 0, 1, ..., 9: the quantile 0.5 is 4.5.
  const auto train = torch::arange(10, torch::kFloat64).view({5, 2});
  const auto test = torch::tensor({{3., 9.}, {1., 2.}, {-7., 4.}}, torch::kFloat64);
  const auto detector = make_detector("react", {{"quantile", 0.5}});
  const auto energy = [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); };
  expect_close(fitted_scores(*detector, plain(train), plain(test)),
               doubles({energy(3, 4.5), energy(1, 2), energy(-7, 4)}), 1e-14);
  EXPECT_EQ(detector->definition()["clip"], 4.5);
  EXPECT_EQ(detector->definition()["tells_nothing"], false);
}

TEST(React, IsThatOfNumPy) {
  const auto train = noise({37, 11}, 0).abs();
  const auto test = 2 * noise({20, 11}, 1);
  const auto weight = noise({5, 11}, 2);
  const auto bias = noise({5}, 3);
  const auto expected =
      oracle(R"(
from scipy.special import logsumexp
for name, percentile, t in (("published", 90, 1), ("other", 37, 4), ("none", 100, 1)):
    clip = np.percentile(x["train"].flatten(), percentile)
    logits = np.minimum(x["test"], clip) @ x["weight"].T + x["bias"]
    out[name] = t * logsumexp(logits / t, axis=1)
)",
             {{"train", train}, {"test", test}, {"weight", weight}, {"bias", bias}});
  const auto scores = [&](const Values& values, double temperature) {
    return fitted_scores(*make_detector("react", values, temperature),
                         features_record(train, weight, bias), features_record(test, weight, bias));
  };
  expect_close(scores({}, 1), expected.at("published"), 1e-12);
  expect_close(scores({{"quantile", 0.37}}, 4), expected.at("other"), 1e-12);
  expect_close(scores({{"quantile", 1}}, 1), expected.at("none"), 1e-12);
}

TEST(React, OfActivationsBelowTheClipIsTheEnergy) {
  const auto train = noise({50, 2}, 4).abs();
  const auto test = 0.01 * noise({10, 2}, 5).abs();
  expect_close(react_scores(train, test, {}, 3), unfitted_scores("energy", plain(test), {}, 3),
               1e-14);
}

TEST(React, DoesNotTellApartWhatLiesAboveTheClip) {
  const auto train = noise({50, 2}, 6).abs();
  const auto scores =
      react_scores(train, torch::tensor({{1e3, 1e3}, {1e9, HUGE_VAL}}, torch::kFloat64));
  EXPECT_EQ(scores[0].item<double>(), scores[1].item<double>());
}

TEST(React, LearnsFromASingleActivation) {
  const auto weight = torch::ones({2, 1}, torch::kFloat64);
  const auto bias = torch::zeros({2}, torch::kFloat64);
  const auto record = features_record(doubles({3}).unsqueeze(1), weight, bias);
  expect_close(fitted_scores(*make_detector("react"), record, record), doubles({3 + std::log(2)}),
               1e-14);
}

TEST(React, OfZerosIsTheEnergyOfTheBias) {
  const auto bias = doubles({1, 2});
  const auto train = features_record(noise({9, 2}, 7).abs(), identity(), bias);
  const auto zeros = features_record(torch::zeros({1, 2}, torch::kFloat64), identity(), bias);
  expect_close(fitted_scores(*make_detector("react"), train, zeros),
               doubles({std::log(std::exp(1) + std::exp(2))}), 1e-14);
}

TEST(React, SaysWhenTheClipLeavesNothing) {
  // One activation of 20 is not 0, so the quantile 0.9 is.
  auto train = torch::zeros({10, 2}, torch::kFloat64);
  train[3][1] = 5;
  const auto detector = make_detector("react");
  EXPECT_FALSE(detector->definition().contains("tells_nothing"));
  const auto scores = fitted_scores(*detector, plain(train), plain(noise({4, 2}, 8).abs()));
  expect_close(scores, torch::full({4}, std::log(2), torch::kFloat64), 1e-14);
  EXPECT_EQ(detector->definition()["tells_nothing"], true);
}

TEST(React, RejectsOptionsOutOfRange) {
  EXPECT_EQ(error_of([] {
              make_detector("react", {{"quantile", 0}});
            }),
            "detector.react.quantile: must be above 0 and at most 1, got 0");
  EXPECT_EQ(error_of([] {
              make_detector("react", {{"quantile", 90}});
            }),
            "detector.react.quantile: must be above 0 and at most 1, got 90");
  EXPECT_EQ(error_of([] { make_detector("react", {}, 0); }),
            "react: temperature must be a finite number above 0, got 0");
}

TEST(React, RejectsFeaturesItCannotUse) {
  const auto train = noise({5, 2}, 9);
  EXPECT_EQ(error_of([&] {
              react_scores(train, torch::tensor({{0., std::nan("")}}, torch::kFloat64));
            }),
            "react: the score of a sample is NaN");
  const auto none = torch::zeros({3, 0}, torch::kFloat64);
  EXPECT_EQ(error_of([&] {
              make_detector("react")->fit(features_record(
                  none, torch::zeros({2, 0}, torch::kFloat64), torch::zeros({2}, torch::kFloat64)));
            }),
            "react: needs at least one feature, got none");
}

}  // namespace kelvin::react_test
