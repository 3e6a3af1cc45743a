#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <string>

#include "tests/support/detectors.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::ash_test {

// With the identity as classifier, so that logits are features.
torch::Tensor ash_scores(const std::string& name, const torch::Tensor& features,
                         const Values& values = {}, double temperature = 1) {
  const auto dims = features.size(1);
  const auto record = features_record(features, torch::eye(dims, torch::kFloat64),
                                      torch::zeros({dims}, torch::kFloat64));
  return unfitted_scores(name, record, values, temperature);
}

torch::Tensor energies(const torch::Tensor& logits, double temperature = 1) {
  return unfitted_scores("energy", logits_record(logits), {}, temperature);
}

const torch::Tensor& four() {
  static const auto activations = torch::tensor({{1., 4., 0., 3.}}, torch::kFloat64);
  return activations;
}

TEST(AshP, KeepsTheLargestAsTheyAre) {
  expect_close(ash_scores("ash_p", four(), {{"percentile", 0.5}}, 3),
               energies(torch::tensor({{0., 4., 0., 3.}}), 3), 1e-13);
}

TEST(AshB, SharesTheSumAmongTheLargest) {
  expect_close(ash_scores("ash_b", four(), {{"percentile", 0.5}}, 3),
               energies(torch::tensor({{0., 4., 0., 4.}}), 3), 1e-13);
}

TEST(AshS, EnlargesTheLargestByWhatWasRemoved) {
  const double factor = std::exp(8. / 7);
  expect_close(ash_scores("ash_s", four(), {{"percentile", 0.5}}, 3),
               energies(torch::tensor({{0., 4 * factor, 0., 3 * factor}}, torch::kFloat64), 3),
               1e-13);
}

TEST(AshB, FillsTheFirstOfEqualActivations) {
  // One activation, but two of four are kept: the other one is the first of three zeros.
  expect_close(ash_scores("ash_b", torch::tensor({{0., 0., 6., 0.}}, torch::kFloat64),
                          {{"percentile", 0.5}}),
               energies(torch::tensor({{3., 0., 3., 0.}})), 1e-13);
}

TEST(Ash, IsThatOfNumPyForBothSigns) {
  const auto weight = noise({5, 23}, 2);
  const auto bias = noise({5}, 3);
  // Rows of both signs whose largest still sum to more than 0.
  const auto test = torch::cat({noise({20, 23}, 0).abs(), noise({20, 23}, 1) + 0.5});
  const auto expected = oracle(R"(
from scipy.special import logsumexp
def energy(h, t):
    return t * logsumexp((h @ x["weight"].T + x["bias"]) / t, axis=1)
for share, t in ((.65, 1), (.9, 5)):
    h = x["test"]
    n = h.shape[1]
    removed = int(np.round(share * n))
    cut = np.sort(h, axis=1)[:, removed - 1:removed]
    kept = h > cut
    assert np.all(kept.sum(axis=1) == n - removed)
    p = np.where(kept, h, 0)
    all_of, rest = h.sum(axis=1, keepdims=True), p.sum(axis=1, keepdims=True)
    assert np.all(rest > 0)
    out[f"ash_p{share}"] = energy(p, t)
    out[f"ash_b{share}"] = energy(kept * (all_of / (n - removed)), t)
    out[f"ash_s{share}"] = energy(p * np.exp(all_of / rest), t)
)",
                               {{"test", test}, {"weight", weight}, {"bias", bias}});
  const auto record = features_record(test, weight, bias);
  for (const std::string name : {"ash_p", "ash_b", "ash_s"}) {
    expect_close(unfitted_scores(name, record), expected.at(name + "0.65"), 1e-11);
    expect_close(unfitted_scores(name, record, {{"percentile", 0.9}}, 5), expected.at(name + "0.9"),
                 1e-11);
  }
}

class EachAsh : public testing::TestWithParam<std::string> {};

TEST_P(EachAsh, OfZerosIsTheEnergyOfTheBias) {
  const auto bias = doubles({1, -2, 3});
  const auto zeros = torch::zeros({2, 7}, torch::kFloat64);
  const auto record = features_record(zeros, noise({3, 7}, 0), bias);
  expect_close(unfitted_scores(GetParam(), record, {}, 2),
               energies(bias.unsqueeze(0).repeat({2, 1}), 2), 1e-14);
}

TEST_P(EachAsh, OfNegativeActivationsIsDefined) {
  // Three of the four are removed, of sum -9; -1 is kept.
  const auto negative = torch::tensor({{-2., -4., -1., -3.}}, torch::kFloat64);
  const auto scores = ash_scores(GetParam(), negative);
  const auto pruned = torch::tensor({{0., 0., -1., 0.}});
  const auto filled = torch::tensor({{0., 0., -10., 0.}});
  const auto nothing = torch::zeros({1, 4});
  const auto& left = GetParam() == "ash_p" ? pruned : GetParam() == "ash_b" ? filled : nothing;
  expect_close(scores, energies(left), 1e-14);
}

TEST_P(EachAsh, SaysWhetherTrainingHadNegativeFeatures) {
  const auto record = [](const torch::Tensor& features) {
    return features_record(features, noise({3, 4}, 0), torch::zeros({3}, torch::kFloat64));
  };
  const auto detector = make_detector(GetParam(), {}, 7);
  detector->fit(record(four()));
  EXPECT_EQ(detector->definition()["negative_training_features"], false);
  EXPECT_EQ(detector->definition()["percentile"], 0.65);
  EXPECT_EQ(detector->definition()["temperature"], 7);
  detector->fit(record(-four()));
  EXPECT_EQ(detector->definition()["negative_training_features"], true);
}

TEST_P(EachAsh, RejectsOptionsOutOfRange) {
  const auto setting = "detector." + GetParam() + ".percentile";
  EXPECT_EQ(error_of([] {
              make_detector(GetParam(), {{"percentile", 65}});
            }),
            setting + ": must be a share from 0 to below 1, got 65");
  EXPECT_EQ(error_of([] {
              make_detector(GetParam(), {{"percentile", -0.1}});
            }),
            setting + ": must be a share from 0 to below 1, got -0.1");
  EXPECT_EQ(error_of([] { make_detector(GetParam(), {}, 0); }),
            GetParam() + ": temperature must be a finite number above 0, got 0");
}

TEST_P(EachAsh, RejectsAnActivationThatIsNotANumber) {
  EXPECT_EQ(error_of([] {
              ash_scores(GetParam(), torch::tensor({{1., std::nan(""), 2., 3.}}, torch::kFloat64));
            }),
            GetParam() + ": the score of a sample is NaN");
}

INSTANTIATE_TEST_SUITE_P(Ash, EachAsh, testing::Values("ash_p", "ash_b", "ash_s"),
                         [](const auto& info) { return info.param; });

}  // namespace kelvin::ash_test
