#include "kelvin/numerics/dispersion.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::dispersion_test {

TEST(WeightBounds, HoldForRandomLogits) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto n = static_cast<int64_t>(2 + seed);
    const auto logits =
        noise({n}, seed).to(torch::kFloat64) * (1 + 0.1 * static_cast<double>(seed));
    const double temperature = 0.5 + 0.1 * static_cast<double>(seed % 10);
    const auto weights = torch::softmax(logits / temperature, 0);
    const double spread = (logits.max() - logits.min()).item<double>();
    const auto count = static_cast<double>(n);
    const auto lemma = lemma_bounds(count, spread, temperature);
    const auto sharp = sharp_bounds(count, spread, temperature);
    constexpr double kRounding = 1e-12;
    EXPECT_LE(lemma.low, sharp.low * (1 + kRounding));
    EXPECT_LE(sharp.low, weights.min().item<double>() * (1 + kRounding));
    EXPECT_GE(sharp.high, weights.max().item<double>() * (1 - kRounding));
    EXPECT_GE(lemma.high, sharp.high * (1 - kRounding));
    const double entropy = -torch::xlogy(weights, weights).sum().item<double>();
    EXPECT_GE(entropy, least_entropy(count, spread, temperature) - kRounding);
  }
}

TEST(SharpBounds, AreMetByOneLogitAgainstEqualOnes) {
  auto logits = torch::zeros({9}, torch::kFloat64);
  logits[4] = 3;
  EXPECT_NEAR(torch::softmax(logits, 0).max().item<double>(), sharp_bounds(9, 3).high, 1e-15);
  EXPECT_NEAR(torch::softmax(-logits, 0).min().item<double>(), sharp_bounds(9, 3).low, 1e-15);
}

TEST(SharpBounds, SurviveSpreadsBeyondAnyNumber) {
  EXPECT_EQ(sharp_bounds(1, 1e6).high, 1);
  EXPECT_EQ(sharp_bounds(1, 1e6).low, 1);
  EXPECT_EQ(sharp_bounds(5, 1e6).high, 1);
  EXPECT_EQ(sharp_bounds(5, 1e6).low, 0);
}

TEST(DispersionLength, IsWhereTheSharpBoundFallsToTheWeight) {
  for (const double spread : {0.0, 2.0, 5.69}) {
    const double n = dispersion_length(spread, 1, 0.5);
    EXPECT_NEAR(sharp_bounds(n, spread).high, 0.5, 1e-12);
  }
  EXPECT_NEAR(sharp_bounds(dispersion_length(4, 2, 0.9), 4, 2).high, 0.9, 1e-12);
}

TEST(DispersionLength, OfGemmaIsAFewHundred) {
  EXPECT_NEAR(dispersion_length(5.69), 297, 1);
  EXPECT_EQ(dispersion_length(1e6), std::numeric_limits<double>::infinity());
}

TEST(LeastEntropy, WithoutASpreadIsThatOfEqualWeights) {
  EXPECT_NEAR(least_entropy(50, 0), std::log(50), 1e-12);
  EXPECT_EQ(least_entropy(1, 3), 0);
}

TEST(SpreadBounds, HoldForRandomHeads) {
  const auto query = noise({8, 6}, 0);
  const auto key = noise({8, 6}, 1);
  const auto y = noise({20, 6}, 2);
  const auto x = noise({20, 30, 6}, 3);
  const auto q = y.matmul(query.t()).unsqueeze(1);
  const auto logits = (x.matmul(key.t()) * q).sum(-1) / std::sqrt(8.0);
  const auto spreads = (logits.amax(-1) - logits.amin(-1)).to(torch::kFloat64);
  const auto bounds = spread_bounds(query, key, y, x, 1 / std::sqrt(8.0));
  EXPECT_EQ(bounds.sizes(), (torch::IntArrayRef{20}));
  EXPECT_TRUE((spreads <= bounds).all().item<bool>());
}

TEST(SpreadBounds, AreMetByOppositeItemsAlongTheQuery) {
  const auto one = torch::eye(3, torch::kFloat64);
  const auto y = doubles({0, 2, 0});
  const auto x = torch::stack({doubles({0, 5, 0}), doubles({0, -5, 0})});
  EXPECT_NEAR(spread_bounds(one, one, y, x).item<double>(), 20, 1e-12);
}

TEST(SpectralNorm, OfADiagonalIsItsLargestEntry) {
  EXPECT_NEAR(spectral_norm(torch::diag(doubles({1, -4, 2}))), 4, 1e-12);
}

TEST(Dispersion, RejectsWhatIsNoSoftmax) {
  EXPECT_EQ(error_of([] { lemma_bounds(0, 1); }), "lemma_bounds: n must be at least 1, got 0");
  EXPECT_EQ(error_of([] { sharp_bounds(2, -1); }),
            "sharp_bounds: the spread must be a finite number, not below 0, got -1");
  EXPECT_EQ(error_of([] { least_entropy(2, 1, 0); }),
            "least_entropy: the temperature must be a finite number above 0, got 0");
  EXPECT_EQ(error_of([] { dispersion_length(1, 1, 1); }),
            "dispersion_length: the weight must be in (0, 1), got 1");
  EXPECT_EQ(error_of([] { spectral_norm(torch::zeros({3})); }),
            "spectral_norm: needs a matrix, got [3]");
  EXPECT_EQ(error_of([] {
              spread_bounds(torch::eye(2), torch::eye(2), torch::zeros({2}), torch::zeros({2}));
            }),
            "spread_bounds: needs y [..., d] and x [..., n, d], got [2] and [2]");
}

}  // namespace kelvin::dispersion_test
