#include "kelvin/ops/simplex_map.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/gradients.h"
#include "tests/support/simplex.h"
#include "tests/support/tensors.h"

namespace kelvin::simplex_map_test {

constexpr double kMasked = -std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class EverySimplexMap : public testing::TestWithParam<std::string> {
 protected:
  static torch::Tensor shares(const torch::Tensor& logits) { return mapped(GetParam(), logits); }
};

// Those whose rows sum to one.
class EveryDistribution : public EverySimplexMap {};

TEST_P(EverySimplexMap, SaysWhatItIs) {
  const auto& entry = simplex_maps().find(GetParam());
  EXPECT_FALSE(entry.summary.empty());
  EXPECT_FALSE(entry.reference.empty());
}

TEST_P(EveryDistribution, GivesSharesThatSumToOne) {
  for (const double scale : {0.01, 1.0, 30.0}) {
    for (const auto type : {torch::kFloat32, torch::kFloat64}) {
      const auto logits = (scale * noise({7, 3, 19}, 1)).to(type);
      const auto result = shares(logits);
      EXPECT_EQ(result.scalar_type(), type);
      ASSERT_EQ(result.sizes(), logits.sizes());
      EXPECT_GE(result.min().item<double>(), 0);
      const double rounding = type == torch::kFloat32 ? 1e-6 : 1e-14;
      expect_close(result.sum(-1), torch::ones({7, 3}), rounding);
    }
  }
}

TEST_P(EverySimplexMap, WorksOverTheLastDimension) {
  const auto logits = noise({2, 3, 11}, 2);
  const auto result = shares(logits);
  expect_close(result[1][2], shares(logits[1][2]), 1e-15);
  // However the logits lie in memory.
  expect_close(shares(logits.transpose(0, 2)), shares(logits.transpose(0, 2).contiguous()), 0);
}

TEST_P(EveryDistribution, IgnoresAConstantAddedToTheLogits) {
  const auto logits = noise({5, 11}, 3);
  expect_close(shares(logits + 17), shares(logits), 1e-13);
}

TEST_P(EveryDistribution, GivesMoreToTheLarger) {
  const auto logits = std::get<0>(noise({5, 11}, 4).sort(-1));
  EXPECT_GE(shares(logits).diff().min().item<double>(), 0);
}

TEST_P(EveryDistribution, GivesEqualLogitsEqualShares) {
  expect_close(shares(torch::full({4}, 1.5)), torch::full({4}, 0.25), 1e-7);
  expect_close(shares(doubles({-7})), doubles({1}), 0);
}

TEST_P(EverySimplexMap, GivesMaskedLogitsExactlyNothing) {
  auto logits = noise({4, 6}, 5);
  const auto expected = shares(logits.index_select(1, labels_of({0, 2, 3, 5})));
  logits.index_fill_(1, labels_of({1, 4}), kMasked);
  const auto result = shares(logits);
  expect_close(result.index_select(1, labels_of({1, 4})), torch::zeros({4, 2}), 0);
  expect_close(result.index_select(1, labels_of({0, 2, 3, 5})), expected, 1e-15);
}

TEST_P(EverySimplexMap, GivesNothingWhereAllIsMasked) {
  for (const auto type : {torch::kFloat32, torch::kFloat64, torch::kBFloat16}) {
    auto logits = noise({3, 5}, 6).to(type);
    const auto others = shares(logits);
    logits[1].fill_(kMasked);
    auto leaf = logits.clone().requires_grad_();
    const auto result = shares(leaf);
    expect_close(result[1], torch::zeros(5), 0);
    expect_close(result[0], others[0], 0);
    expect_close(result[2], others[2], 0);
    (result * noise({3, 5}, 7)).sum().backward();
    expect_close(leaf.grad()[1], torch::zeros(5), 0);
    EXPECT_TRUE(torch::isfinite(leaf.grad()).all().item<bool>());
  }
}

TEST_P(EverySimplexMap, HasFiniteGradientsBesideMaskedLogits) {
  auto logits = noise({3, 5}, 8);
  logits.select(1, 2).fill_(kMasked);
  const auto& leaf = logits.requires_grad_();
  (shares(leaf) * noise({3, 5}, 9)).sum().backward();
  EXPECT_TRUE(torch::isfinite(leaf.grad()).all().item<bool>());
  expect_close(leaf.grad().select(1, 2), torch::zeros(3), 0);
  EXPECT_GT(leaf.grad().abs().max().item<double>(), 0);
}

TEST_P(EveryDistribution, SurvivesHugeLogits) {
  for (const auto type : {torch::kFloat32, torch::kFloat64, torch::kBFloat16}) {
    const auto far = torch::tensor({0.0, 1e6, -1e6, 5e5}).to(type);
    expect_close(shares(far), doubles({0, 1, 0, 0}), 0);
    const auto tied = torch::tensor({-1e6, 1e6, 1e6, 0.0}).to(type);
    expect_close(shares(tied), doubles({0, 0.5, 0.5, 0}), 1e-7);
    expect_close(shares((1e6 * noise({6, 40}, 10)).to(type)).sum(-1), torch::ones(6), 0.01);
  }
}

TEST_P(EverySimplexMap, ComputesHalfPrecisionInSingle) {
  const auto logits = (2 * noise({6, 40}, 11)).to(torch::kBFloat16);
  const auto result = shares(logits);
  EXPECT_EQ(result.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(result.equal(shares(logits.to(torch::kFloat32)).to(torch::kBFloat16)));
}

TEST_P(EverySimplexMap, HasTheGradientOfCentralDifferences) {
  for (const double scale : {0.1, 1.0, 2.0}) {
    SCOPED_TRACE(scale);
    expect_gradient([](const torch::Tensor& logits) { return shares(logits); },
                    scale * noise({3, 9}, 12));
  }
}

TEST_P(EverySimplexMap, LetsANanBeSeen) {
  const auto result = shares(doubles({1, kNan, 2}));
  EXPECT_TRUE(result.isnan().any().item<bool>());
  EXPECT_FALSE(
      shares(torch::stack({doubles({1, 2}), doubles({kNan, 2})}))[0].isnan().any().item<bool>());
}

TEST_P(EverySimplexMap, DividesLogitsByItsTemperature) {
  auto logits = noise({4, 9}, 15);
  logits[1][2] = kMasked;
  logits[2].fill_(kMasked);
  for (const double temperature : {0.01, 0.5, 3.0, 1e6}) {
    expect_close(mapped(GetParam(), logits, {}, temperature), shares(logits / temperature), 1e-9);
  }
  // Where quotients would be infinite, the largest takes all.
  expect_close(mapped(GetParam(), doubles({-1e30, 1e30, -1e30}), {}, 1e-300), doubles({0, 1, 0}),
               1e-15);
  EXPECT_TRUE(error_of([&] {
                mapped(GetParam(), logits, {}, 0);
              }).ends_with(": temperature must be a finite number above 0, got 0"));
}

TEST_P(EverySimplexMap, LeavesItsInputAlone) {
  const auto logits = noise({5, 11}, 13);
  const auto copy = logits.clone();
  shares(logits);
  EXPECT_TRUE(logits.equal(copy));
}

TEST_P(EverySimplexMap, OfNoRowsIsNoRows) {
  EXPECT_EQ(shares(torch::zeros({0, 3})).sizes(), (torch::IntArrayRef{0, 3}));
}

TEST_P(EverySimplexMap, RejectsWhatAreNoLogits) {
  const auto& name = GetParam();
  EXPECT_EQ(error_of([] { shares(torch::tensor(1.0)); }),
            name + ": logits must be [..., classes], got []");
  EXPECT_EQ(error_of([] {
              shares(torch::zeros({2, 0}));
            }),
            name + ": logits must be [..., classes], got [2, 0]");
  EXPECT_EQ(error_of([] {
              shares(labels_of({1, 2}));
            }),
            name + ": logits must be floating-point numbers, are long int");
}

TEST_P(EverySimplexMap, GivesWeightsFromZeroToOneAndSaysWhetherTheySumToOne) {
  for (const double shift : {-5.0, 0.0, 5.0}) {
    const auto result = shares(3 * noise({20, 9}, 14) + shift);
    EXPECT_GE(result.min().item<double>(), 0);
    EXPECT_LE(result.max().item<double>(), 1);
  }
  // Low ones, of which many maps make little.
  const auto sums = shares(3 * noise({20, 9}, 14) - 5).sum(-1);
  const double off = (sums - 1).abs().max().item<double>();
  EXPECT_EQ(off < 1e-12, simplex_maps().find(GetParam()).sums_to_one) << off;
}

TEST_P(EverySimplexMap, TakesRowsOfOne) {
  for (const double logit : {-30.0, 0.0, 2.0}) {
    auto leaf = doubles({logit}).view({1, 1}).requires_grad_();
    const auto result = shares(leaf);
    EXPECT_EQ(result.sizes(), (torch::IntArrayRef{1, 1}));
    EXPECT_LE(result.item<double>(), 1);
    if (simplex_maps().find(GetParam()).sums_to_one) {
      EXPECT_EQ(result.item<double>(), 1);
    }
    result.sum().backward();
    EXPECT_TRUE(torch::isfinite(leaf.grad()).all().item<bool>());
  }
  // Another that is masked is none.
  expect_close(shares(doubles({2, kMasked})).narrow(0, 0, 1), shares(doubles({2})), 1e-15);
}

TEST_P(EverySimplexMap, HasFiniteGradientsAtHugeLogits) {
  for (const auto type : {torch::kFloat32, torch::kFloat64, torch::kBFloat16}) {
    auto leaf = (1e6 * noise({6, 40}, 10)).to(type).requires_grad_();
    shares(leaf).square().sum().backward();
    EXPECT_TRUE(torch::isfinite(leaf.grad()).all().item<bool>());
  }
}

std::vector<std::string> names_of_distributions() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : simplex_maps().entries()) {
    if (entry.sums_to_one) names.push_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, EverySimplexMap, testing::ValuesIn(simplex_maps().names()),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(All, EveryDistribution, testing::ValuesIn(names_of_distributions()),
                         [](const auto& info) { return info.param; });

TEST(SimplexMaps, HaveNames) {
  EXPECT_EQ(simplex_maps().names(),
            (std::vector<std::string>{"adaptive", "alpha_entmax", "asentmax", "entmax15", "log_n",
                                      "sigmoid", "softmax", "softmax_off_by_one", "sparsemax",
                                      "ssmax", "stick_breaking", "top_k"}));
  EXPECT_TRUE(error_of([] {
                simplex_maps().find("entmax51");
              }).starts_with("no softmax named 'entmax51'; did you mean 'entmax15'?"));
}

TEST(UnmaskedCounts, LeaveMaskedLogitsOut) {
  const auto logits = torch::tensor({{1.0, kMasked, 2.0}, {kNan, 0.0, 1.0}}, torch::kFloat32);
  const auto counts = unmasked_counts(logits);
  EXPECT_EQ(counts.scalar_type(), torch::kFloat32);
  expect_close(counts, torch::tensor({{2}, {3}}), 0);
}

TEST(ScaledLogits, KeepMaskedOnesAtAnyFactor) {
  const auto logits = torch::tensor({{1.0, kMasked, 3.0}, {0.0, -1.0, kMasked}}, torch::kFloat64);
  const auto scaled = scaled_logits(logits, doubles({2, 0}).view({2, 1}));
  EXPECT_TRUE(
      scaled.equal(torch::tensor({{-4.0, kMasked, 0.0}, {0.0, 0.0, kMasked}}, torch::kFloat64)));
}

TEST(SimplexMaps, GrowSparserFromSoftmaxToSparsemax) {
  const auto logits = 2 * noise({50, 20}, 14);
  const auto zeros = [&](const std::string& name) {
    return (mapped(name, logits) == 0).sum().item<int64_t>();
  };
  EXPECT_EQ(zeros("softmax"), 0);
  EXPECT_GT(zeros("entmax15"), 100);
  EXPECT_GT(zeros("sparsemax"), zeros("entmax15"));
  EXPECT_LT(zeros("sparsemax"), 50 * 19);
}

}  // namespace kelvin::simplex_map_test
