#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

Record logits_record(const torch::Tensor& logits) {
  return record_of(logits, torch::zeros({logits.size(0)}, torch::kInt64));
}

double rank_of(const torch::Tensor& logits, double temperature = 1, double gamma = 1e-3) {
  const auto readings = measured("post_softmax_rank", {logits_record(logits)}, {{"gamma", gamma}},
                                 {.temperature = temperature});
  return reading_of(readings, "post_softmax_rank").value;
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
                                  "post_softmax_rank");
  EXPECT_EQ(reading.split, "test");
  EXPECT_EQ(reading.definition["gamma"], 0.05);
  EXPECT_EQ(reading.definition["temperature"], 2);
  EXPECT_EQ(reading.definition["samples"], 9);
}

TEST(PostSoftmaxRank, IgnoresTrainingAndForeignSamples) {
  auto train = logits_record(100 * torch::eye(4));
  train.split = Split::train;
  auto foreign = logits_record(100 * torch::eye(4));
  foreign.ood = "textures";
  const auto flat = logits_record(torch::zeros({3, 4}));
  const auto readings = measured("post_softmax_rank", {train, flat, foreign});
  EXPECT_EQ(reading_of(readings, "post_softmax_rank", {{"samples", 3}}).value, 1);
  EXPECT_EQ(error_of([&] {
              measured("post_softmax_rank", {train, foreign});
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

}  // namespace
}  // namespace kelvin
