#include "kelvin/numerics/gaussian_fit.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::gaussian_fit_test {

TEST(SharedGaussians, MeasureTheDistanceToTheNearestMean) {
  const SharedGaussians gaussians(doubles({0, 0, 10, 0}).view({2, 2}),
                                  doubles({4, 0, 0, 1}).view({2, 2}));
  EXPECT_EQ(gaussians.rank(), 2);
  expect_close(gaussians.distances(doubles({2, 0, 9, 3, 0, 0}).view({3, 2})),
               doubles({1, 0.25 + 9, 0}), 1e-14);
}

TEST(SharedGaussians, InvertAsPinvhDoes) {
  // The cutoff is 6 * 2^-52 of the largest eigenvalue.
  const auto turned = std::get<0>(torch::linalg_qr(noise({6, 6}, 0)));
  const auto values = doubles({1, 0.5, 1e-3, 1e-10, 1e-16, 0});
  const NamedTensors inputs = {{"covariance", (turned * values).matmul(turned.t())},
                               {"rows", noise({9, 6}, 1)}};
  const auto expected = oracle(R"(
from scipy.linalg import pinvh
inverse, rank = pinvh(x["covariance"], return_rank=True)
out["distances"] = np.einsum("ni,ij,nj->n", x["rows"], inverse, x["rows"])
out["rank"] = np.array(rank)
)",
                               inputs);
  const SharedGaussians gaussians(torch::zeros({1, 6}, torch::kFloat64), inputs.at("covariance"));
  EXPECT_EQ(gaussians.rank(), expected.at("rank").item<int64_t>());
  EXPECT_EQ(gaussians.rank(), 4);
  // Of the fourth eigenvalue rounding leaves six digits.
  const auto ratio = gaussians.distances(inputs.at("rows")) / expected.at("distances");
  expect_close(ratio, torch::ones({9}), 1e-4);
}

TEST(SharedGaussians, LoseNoDigitsFarFromZero) {
  const auto offset = 1e6 * torch::ones({3}, torch::kFloat64);
  const auto means = noise({4, 3}, 2);
  const auto rows = noise({20, 3}, 3);
  const auto covariance = torch::eye(3, torch::kFloat64);
  expect_close(SharedGaussians(means + offset, covariance).distances(rows + offset),
               SharedGaussians(means, covariance).distances(rows), 1e-8);
}

TEST(SharedGaussians, WithoutVarianceHaveNoDistance) {
  const SharedGaussians gaussians(noise({2, 3}, 4), torch::zeros({3, 3}, torch::kFloat64));
  EXPECT_EQ(gaussians.rank(), 0);
  expect_close(gaussians.distances(noise({5, 3}, 5)), torch::zeros({5}), 0);
}

TEST(SharedGaussians, RejectOtherShapes) {
  const auto covariance = torch::eye(3, torch::kFloat64);
  EXPECT_EQ(error_of([&] {
              SharedGaussians(noise({2, 4}, 0), covariance);
            }),
            "SharedGaussians: means and covariance must be [gaussians, dims] and [dims, dims], got "
            "[2, 4] and [3, 3]");
  const SharedGaussians gaussians(noise({2, 3}, 0), covariance);
  EXPECT_EQ(error_of([&] {
              gaussians.distances(noise({2, 4}, 0));
            }),
            "SharedGaussians: rows must be [rows, dims] with the dims of the means, got [2, 4]");
}

TEST(Covariances, AreThoseOfNumPy) {
  // More than a block of rows.
  const auto features = noise({2500, 5}, 6).matmul(noise({5, 5}, 7)) + 3;
  const auto labels = torch::arange(2500) % 7;
  const auto expected = oracle(R"(
means = np.stack([x["features"][x["labels"] == c].mean(0) for c in range(7)])
d = x["features"] - means[x["labels"]]
out["within"] = d.T @ d / len(d)
out["total"] = np.cov(x["features"].T, bias=True)
)",
                               {{"features", features}, {"labels", labels}});
  const auto classes = class_means(features, labels, 7);
  const auto within = within_covariance(features, classes);
  expect_close(within, expected.at("within"), 1e-11);
  expect_close(total_covariance(within, classes), expected.at("total"), 1e-11);
}

TEST(Covariances, OfConstantsAreExactlyZero) {
  auto features = noise({77, 4}, 8);
  const auto labels = torch::arange(77) % 3;
  features.select(1, 1).fill_(0.1);                                 // in all classes
  features.select(1, 2).copy_(labels.to(torch::kFloat64) / 3 + 5);  // in each class
  const auto classes = class_means(features, labels, 3);
  const auto within = within_covariance(features, classes);
  const auto total = total_covariance(within, classes);
  for (const int64_t column : {1, 2}) {
    expect_close(within[column], torch::zeros({4}), 0);
    expect_close(within.select(1, column), torch::zeros({4}), 0);
  }
  expect_close(total[1], torch::zeros({4}), 0);
  EXPECT_GT(total[2][2].item<double>(), 0.01);
  EXPECT_GT(within[0][0].item<double>(), 0.1);
}

}  // namespace kelvin::gaussian_fit_test
