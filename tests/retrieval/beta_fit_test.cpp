#include "kelvin/retrieval/beta_fit.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kelvin/retrieval/training.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::beta_fit_test {

TEST(FittedBeta, FindsThePolynomialThatBetasCameFrom) {
  const std::array<double, 5> published = {-0.037, 0.481, -2.3, 4.917, -1.791};
  const auto entropies = torch::linspace(0.1, 9, 200, torch::kFloat64);
  auto betas = torch::zeros_like(entropies);
  for (const double each : published) betas = betas * entropies + each;
  const auto fitted = fitted_beta(entropies, betas);
  for (size_t i = 0; i < fitted.size(); ++i) EXPECT_NEAR(fitted[i], published[i], 1e-8);
  EXPECT_LT(beta_error(fitted, entropies, betas), 1e-9);
}

TEST(FittedBeta, LeavesNoiseToItsError) {
  const auto entropies = torch::linspace(0, 5, 2000, torch::kFloat64);
  const auto betas = 2 + 0.5 * noise({2000}, 0);
  EXPECT_NEAR(beta_error(fitted_beta(entropies, betas), entropies, betas), 0.5, 0.03);
}

TEST(BestBetas, AreAtLeastAsGoodAsAnyOther) {
  const torch::NoGradGuard no_grad;
  const RetrievalNetwork network({.width = 16}, 0);
  {
    const torch::AutoGradMode with_gradients(true);
    RetrievalTrainer trainer(
        network, [](const torch::Tensor& s) { return torch::softmax(s, -1); },
        {.learning_rate = 3e-3}, 1);
    for (int i = 0; i < 40; ++i) trainer.step();
  }
  const RetrievalEvaluation options{.size = 64, .sets = 30, .seed = 5};
  const auto best = best_betas(network, options);
  ASSERT_EQ(best.betas.size(0), 30);
  for_set_blocks(options, 10, [&](int64_t, const RetrievalSets& sets) {
    const auto hidden = network.hidden(sets);
    const auto scores = network.scores(hidden, sets);
    const auto log_probability = [&](const torch::Tensor& betas) {
      const auto weights = torch::softmax(scores * betas.to(torch::kFloat32).unsqueeze(1), 1);
      return torch::log_softmax(network.logits(hidden, weights), 1)
          .gather(1, sets.labels.unsqueeze(1))
          .squeeze(1);
    };
    const auto at_best = log_probability(best.betas);
    for (const double beta : {0.3, 1.0, 2.0, 5.0, 9.0}) {
      const auto other = log_probability(torch::full({30}, beta, torch::kFloat64));
      EXPECT_TRUE((at_best >= other - 1e-3).all().item<bool>()) << beta;
    }
    const auto weights = torch::softmax(scores.to(torch::kFloat64), 1);
    expect_close(best.entropies, -torch::xlogy(weights, weights).sum(1), 1e-6);
  });
}

TEST(BetaFit, RejectsWhatCannotBeFitted) {
  const RetrievalNetwork network({.width = 8}, 0);
  EXPECT_EQ(error_of([&] { best_betas(network, {}, {.least = 2, .most = 1}); }),
            "best_betas: betas must go up from above 0 to a finite number, got 2 to 1");
  EXPECT_EQ(error_of([] { fitted_beta(torch::ones({4}), torch::ones({4})); }),
            "fitted_beta: needs a beta for each of at least five entropies, got [4] for [4]");
  EXPECT_EQ(error_of([] { fitted_beta(torch::zeros({9}), torch::ones({9})); }),
            "fitted_beta: entropies must be finite, one of them above 0, and betas finite");
}

}  // namespace kelvin::beta_fit_test
