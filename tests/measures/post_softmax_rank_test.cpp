#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::post_softmax_rank_test {

Record logits_record(const torch::Tensor& logits) {
  return record_of(logits, torch::zeros({logits.size(0)}, torch::kInt64));
}

double rank_of(const torch::Tensor& logits, double temperature = 1, double gamma = 1e-3) {
  const auto readings = measured("post_softmax_rank", {logits_record(logits)}, {{"gamma", gamma}},
                                 {.temperature = temperature});
  return reading_of(readings, "post_softmax_rank", {{"gamma", gamma}}).value;
}

TEST(PostSoftmaxRank, OfCertaintyIsTheNumberOfClassesThatOccur) {
  const auto certain = 100 * torch::eye(6);
  EXPECT_EQ(rank_of(certain), 6);
  EXPECT_EQ(rank_of(certain.slice(0, 0, 4)), 4);
}

TEST(PostSoftmaxRank, OfUniformProbabilitiesIsOne) {
  EXPECT_EQ(rank_of(noise({10, 1}, 0).expand({10, 5})), 1);
  EXPECT_EQ(rank_of(noise({50, 5}, 1), /*temperature=*/1e6), 1);
}

TEST(PostSoftmaxRank, IsThatOfNumPyAtEveryTemperatureAndGamma) {
  const auto logits = noise({80, 12}, 2);
  const auto temperatures = doubles({0.05, 1, 30, 300});
  const auto gammas = doubles({1e-1, 1e-2, 1e-3});
  const auto expected =
      oracle(R"(
from scipy.special import softmax
ranks = []
for t in x["temperatures"]:
    s = np.linalg.svd(softmax(x["logits"] / t, axis=1), compute_uv=False)
    ranks.append([np.sum(s > g * s[0]) for g in x["gammas"]])
out["ranks"] = np.array(ranks, dtype=float)
)",
             {{"logits", logits}, {"temperatures", temperatures}, {"gammas", gammas}})
          .at("ranks");
  EXPECT_GE(std::get<0>(at::_unique(expected)).numel(), 3) << "the cases are all alike";
  auto ranks = torch::empty_like(expected);
  for (int64_t t = 0; t < temperatures.size(0); ++t) {
    for (int64_t g = 0; g < gammas.size(0); ++g) {
      ranks[t][g] = rank_of(logits, temperatures[t].item<double>(), gammas[g].item<double>());
    }
  }
  expect_close(ranks, expected, 0);
}

TEST(PostSoftmaxRank, IgnoresAConstantPerSample) {
  const auto logits = noise({40, 8}, 3);
  const double rank = rank_of(logits, /*temperature=*/30, /*gamma=*/1e-2);
  EXPECT_EQ(rank_of(logits + 50 * noise({40, 1}, 4), /*temperature=*/30, /*gamma=*/1e-2), rank);
}

TEST(PostSoftmaxRank, SaysWhatItMeans) {
  const auto reading = reading_of(measured("post_softmax_rank", {logits_record(noise({9, 3}, 5))},
                                           {{"gamma", 0.05}}, {.temperature = 2}),
                                  "post_softmax_rank", {{"gamma", 0.05}});
  EXPECT_EQ(reading.split, "test");
  EXPECT_EQ(reading.definition["upper_bound"], 3);
  EXPECT_EQ(reading.definition["temperature"], 2);
  EXPECT_EQ(reading.definition["samples"], 9);
}

TEST(PostSoftmaxRank, ListsItsOwnGammaOnceAndFirst) {
  for (const double gamma : {1e-3, 0.05}) {
    const auto readings =
        measured("post_softmax_rank", {logits_record(noise({20, 6}, 6))}, {{"gamma", gamma}});
    EXPECT_EQ(readings.front().name, "post_softmax_rank");
    EXPECT_EQ(readings.front().definition["gamma"], gamma);
    for (const double each : {1e-2, 1e-3, 1e-4}) {
      reading_of(readings, "post_softmax_rank", {{"gamma", each}});
    }
  }
}

TEST(PostSoftmaxRank, HasSpectrumAndRanksOfNumPy) {
  const auto logits = 4 * noise({60, 7}, 7);
  const auto readings =
      measured("post_softmax_rank", {logits_record(logits)}, {}, {.temperature = 3});
  const auto expected = oracle(R"(
from scipy.special import softmax
s = np.linalg.svd(softmax(x["logits"] / 3, axis=1), compute_uv=False)
out["values"] = s
p = s / s.sum()
q = p + 1e-7
out["ranks"] = np.array([np.exp(-np.sum(p * np.log(p))), np.exp(-np.sum(q * np.log(q))),
                         np.sum(s**2) / s[0]**2, np.sum(s**2)**2 / np.sum(s**4)])
)",
                               {{"logits", logits}});
  std::vector<double> values;
  for (const auto& reading : readings_of(readings, "post_softmax_singular_value")) {
    EXPECT_EQ(reading.index, static_cast<int64_t>(values.size()));
    EXPECT_EQ(reading.definition["matrix"], "softmax(M / T) (class x sample)");
    values.push_back(reading.value);
  }
  expect_close(doubles(values), expected.at("values"), 1e-8);
  std::vector<double> ranks;
  for (const char* name : {"effective_rank", "rankme", "stable_rank", "participation_ratio"}) {
    ranks.push_back(reading_of(readings, std::string("post_softmax_") + name).value);
  }
  expect_close(doubles(ranks), expected.at("ranks"), 1e-8);
}

TEST(PostSoftmaxRank, IsNeverMistakenForTheLogits) {
  for (const auto& reading : measured("post_softmax_rank", {logits_record(noise({20, 6}, 8))})) {
    EXPECT_TRUE(reading.name.starts_with("post_softmax_")) << reading.name;
  }
}

TEST(PostSoftmaxRank, OfOneSampleIsOne) {
  const auto readings = measured("post_softmax_rank", {logits_record(noise({1, 5}, 9))});
  EXPECT_EQ(readings_of(readings, "post_softmax_singular_value").size(), 1U);
  EXPECT_EQ(readings.front().value, 1);
  EXPECT_EQ(readings.front().definition["upper_bound"], 1);
}

TEST(PostSoftmaxRank, RejectsLogitsThatAreNotFinite) {
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    auto logits = noise({20, 6}, 10);
    logits[1][2] = value;
    EXPECT_EQ(error_of([&] { measured("post_softmax_rank", {logits_record(logits)}); }),
              "post_softmax_rank: logits must be finite, got a NaN or an infinity");
  }
}

TEST(PostSoftmaxRank, HoldsOneMatrixOfClasses) {
  const auto record = logits_record(noise({4, 6}, 11));
  EXPECT_EQ(make_measure("post_softmax_rank")->memory(record, 1000), 6 * 6 * 8);
}

TEST(PostSoftmaxRank, IgnoresTrainingAndOodSamples) {
  auto train = logits_record(100 * torch::eye(4));
  train.split = Split::train;
  auto ood = logits_record(100 * torch::eye(4));
  ood.ood = "textures";
  const auto flat = logits_record(torch::zeros({3, 4}));
  const auto readings = measured("post_softmax_rank", {train, flat, ood});
  EXPECT_EQ(readings.front().definition["samples"], 3);
  EXPECT_EQ(readings.front().value, 1);
  EXPECT_EQ(error_of([&] {
              measured("post_softmax_rank", {train, ood});
            }),
            "post_softmax_rank: no records of the test split were shown");
}

TEST(PostSoftmaxRank, RejectsAGammaOutsideZeroToOne) {
  for (const double gamma : {0.0, 1.0}) {
    EXPECT_TRUE(error_of([&] {
                  make_measure("post_softmax_rank", {{"gamma", gamma}});
                }).starts_with("measure.post_softmax_rank.gamma: must be in (0, 1), got "));
  }
}

}  // namespace kelvin::post_softmax_rank_test
