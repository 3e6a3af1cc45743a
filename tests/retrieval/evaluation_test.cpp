#include "kelvin/retrieval/evaluation.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <mutex>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::evaluation_test {

const NamedMap kSoftmax{.name = "softmax",
                        .map = [](const torch::Tensor& s) { return torch::softmax(s, -1); }};
const NamedMap kUniform{.name = "uniform", .map = [](const torch::Tensor& scores) {
                          return torch::ones_like(scores) / scores.size(1);
                        }};
const NamedMap kUnsummed{.name = "unsummed", .map = [](const torch::Tensor& scores) {
                           return torch::ones_like(scores) * 3;
                         }};

TEST(RetrievalEvaluation, OfEqualWeightsKnowsEverythingOnPaper) {
  const RetrievalNetwork network({.width = 8}, 0);
  const auto measured =
      evaluate_retrieval(network, {kUniform, kUnsummed}, {.size = 50, .sets = 40});
  ASSERT_EQ(measured.qualities.size(), 2U);
  EXPECT_NEAR(measured.qualities[0].entropy, std::log(50), 1e-6);
  EXPECT_NEAR(measured.qualities[1].entropy, std::log(50), 1e-6);
  EXPECT_NEAR(measured.qualities[0].top_weight, 0.02, 1e-6);
  EXPECT_NEAR(measured.qualities[0].right_weight, 0.02, 1e-6);
  EXPECT_EQ(measured.qualities[0].heat.sizes(), (torch::IntArrayRef{32, 16}));
}

// Blocks hold a few sets each; a mean over them is that over the sets.
TEST(RetrievalEvaluation, IsThatOfAllSetsAtOnce) {
  const torch::NoGradGuard no_grad;
  const RetrievalNetwork network({.width = 8}, 1);
  const RetrievalEvaluation options{.size = 6000, .sets = 5, .shown = 3, .seed = 9};
  const auto measured = evaluate_retrieval(network, {kSoftmax}, options);
  EXPECT_EQ(block_count(options), 3);
  double right = 0;
  double spread = 0;
  double top = 0;
  for_set_blocks(options, 10, [&](int64_t, const RetrievalSets& sets) {
    const auto answer = network.answer(sets, kSoftmax.map);
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    right += (answer.logits.argmax(1) == sets.labels).sum().item<double>() / 5;
    spread += (answer.scores.amax(1) - answer.scores.amin(1)).sum().item<double>() / 5;
    top += answer.weights.amax(1).sum().item<double>() / 5;
  });
  EXPECT_NEAR(measured.qualities[0].accuracy, right, 1e-12);
  EXPECT_NEAR(measured.spread, spread, 1e-6);
  EXPECT_NEAR(measured.qualities[0].top_weight, top, 1e-9);
  EXPECT_EQ(measured.qualities[0].heat.sizes(), (torch::IntArrayRef{3, 16}));
}

TEST(RetrievalEvaluation, FindsNothingBeyondTheBounds) {
  const RetrievalNetwork network({.width = 16}, 3);
  for (const int64_t size : {1, 2, 100}) {
    const auto measured = evaluate_retrieval(network, {kSoftmax}, {.size = size, .sets = 50});
    EXPECT_EQ(measured.violations, 0) << size;
    EXPECT_LE(measured.most_of_spread_bound, 1) << size;
    EXPECT_LE(measured.spread, measured.largest_spread) << size;
  }
}

TEST(RetrievalEvaluation, ShowsWeightsOfTheHighestPriorityFirst) {
  const torch::NoGradGuard no_grad;
  const RetrievalNetwork network({.width = 8}, 1);
  const RetrievalEvaluation options{.size = 20, .sets = 4, .shown = 4};
  const auto heat = evaluate_retrieval(network, {kSoftmax}, options).qualities[0].heat;
  for_set_blocks(options, 10, [&](int64_t, const RetrievalSets& sets) {
    const auto weights = network.answer(sets, kSoftmax.map).weights;
    const auto order = sets.priorities.argsort(1, /*descending=*/true).narrow(1, 0, 16);
    expect_close(heat, weights.gather(1, order), 1e-7);
  });
}

TEST(RetrievalEvaluation, RejectsWhatCannotBeEvaluated) {
  const RetrievalNetwork network({.width = 8}, 0);
  EXPECT_EQ(error_of([&] { evaluate_retrieval(network, {kSoftmax}, {.size = 0}); }),
            "retrieval evaluation: sizes must be from 1 to 1048576, got 0");
  EXPECT_EQ(error_of([&] { evaluate_retrieval(network, {kSoftmax}, {.sets = 0}); }),
            "retrieval evaluation: needs at least one set, got 0");
  EXPECT_EQ(error_of([&] { evaluate_retrieval(network, {kSoftmax}, {.shown = -1}); }),
            "retrieval evaluation: the sets shown must not be below 0, got -1");
  EXPECT_EQ(error_of([&] { evaluate_retrieval(network, {}, {}); }),
            "retrieval evaluation: needs at least one map");
}

}  // namespace kelvin::evaluation_test
