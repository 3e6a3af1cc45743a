#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/detectors.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::scale_test {

// With the identity as classifier, so that logits are features.
torch::Tensor scale_scores(const torch::Tensor& features, const Values& values = {},
                           double temperature = 1) {
  const auto dims = features.size(1);
  const auto record = features_record(features, torch::eye(dims, torch::kFloat64),
                                      torch::zeros({dims}, torch::kFloat64));
  return unfitted_scores("scale", record, values, temperature);
}

torch::Tensor energies(const torch::Tensor& logits, double temperature = 1) {
  return unfitted_scores("energy", logits_record(logits), {}, temperature);
}

TEST(Scale, EnlargesAllActivationsOfASample) {
  const auto features = torch::tensor({{1., 4., 0., 3.}}, torch::kFloat64);
  expect_close(scale_scores(features, {{"percentile", 0.5}}, 3),
               energies(std::exp(8. / 7) * features, 3), 1e-13);
}

TEST(Scale, IsThatOfNumPyForBothSigns) {
  const auto weight = noise({5, 23}, 2);
  const auto bias = noise({5}, 3);
  const auto test = torch::cat({noise({20, 23}, 0).abs(), noise({20, 23}, 1) + 0.5});
  const auto expected = oracle(R"(
from scipy.special import logsumexp
for share, t in ((.85, 1), (.3, 5)):
    h = x["test"]
    kept = h.shape[1] - int(np.round(share * h.shape[1]))
    largest = -np.sort(-h, axis=1)[:, :kept]
    assert np.all(largest.sum(axis=1) > 0)
    factor = np.exp(h.sum(axis=1) / largest.sum(axis=1))
    logits = (h * factor[:, None]) @ x["weight"].T + x["bias"]
    out[str(share)] = t * logsumexp(logits / t, axis=1)
)",
                               {{"test", test}, {"weight", weight}, {"bias", bias}});
  const auto record = features_record(test, weight, bias);
  expect_ratio(unfitted_scores("scale", record), expected.at("0.85"), 1e-11);
  expect_ratio(unfitted_scores("scale", record, {{"percentile", 0.3}}, 5), expected.at("0.3"),
               1e-11);
}

TEST(Scale, OfZerosIsTheEnergyOfTheBias) {
  const auto bias = doubles({1, -2, 3});
  const auto zeros = torch::zeros({2, 7}, torch::kFloat64);
  expect_close(unfitted_scores("scale", features_record(zeros, noise({3, 7}, 0), bias), {}, 2),
               energies(bias.unsqueeze(0).repeat({2, 1}), 2), 1e-14);
}

TEST(Scale, OfActivationsThatSumToNoMoreThanZeroIsTheEnergyOfTheBiasToo) {
  const auto negative = torch::tensor({{-2., -4., -1., -3.}, {0., -1., 0., 0.}}, torch::kFloat64);
  expect_close(scale_scores(negative), energies(torch::zeros({2, 4})), 1e-14);
}

TEST(Scale, SaysItsOptionsAndWhetherTrainingHadNegativeFeatures) {
  const auto record = features_record(noise({9, 4}, 1), noise({3, 4}, 0), doubles({0, 0, 0}));
  const auto detector = make_detector("scale", {}, 7);
  detector->fit(record);
  EXPECT_EQ(detector->definition()["negative_training_features"], true);
  EXPECT_EQ(detector->definition()["percentile"], 0.85);
  EXPECT_EQ(detector->definition()["temperature"], 7);
}

TEST(Scale, RejectsOptionsOutOfRange) {
  EXPECT_EQ(error_of([] {
              make_detector("scale", {{"percentile", 1}});
            }),
            "detector.scale.percentile: must be a share from 0 to below 1, got 1");
  EXPECT_EQ(error_of([] { make_detector("scale", {}, 0); }),
            "scale: temperature must be a finite number above 0, got 0");
}

TEST(Scale, RejectsAnActivationThatIsNotANumber) {
  EXPECT_EQ(error_of([] {
              scale_scores(torch::tensor({{1., std::nan(""), 2., 3.}}, torch::kFloat64));
            }),
            "scale: the score of a sample is NaN");
}

}  // namespace kelvin::scale_test
