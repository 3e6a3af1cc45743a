#include "kelvin/numerics/streamed_regression.h"

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <torch/types.h>

#include <limits>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::streamed_regression_test {

const std::vector<double> kPenalties = {1e-1, 1e-2, 1e-3};

struct Problem {
  torch::Tensor features;  // float32
  torch::Tensor labels;
  torch::Tensor held_out = {};
};

// Labels of a noisy linear rule in 20 features that vary very differently, above all together, and
// are not centred.
Problem noisy_problem(int64_t samples, uint64_t seed) {
  const auto hidden = noise({samples, 20}, seed);
  const auto scores = 2 * hidden.matmul(noise({20, 4}, 1)) + 2 * noise({samples, 4}, seed + 1);
  const auto mixed = hidden.matmul(torch::eye(20) + 0.15 * noise({20, 20}, 2)) +
                     3 * hidden.narrow(1, 0, 1) * noise({1, 20}, 4);
  return {.features = (mixed * noise({20}, 3).exp() + 5).to(torch::kFloat32),
          .labels = scores.argmax(1)};
}

// Shows all samples in minibatches, in an order that differs from pass to pass.
void show_pass(StreamedRegression& regression, const Problem& problem, uint64_t pass,
               int64_t size = 64) {
  const auto order = noise({problem.labels.size(0)}, 100 + pass).argsort();
  for (const auto& chosen : order.split(size)) {
    Minibatch batch{.features = problem.features.index_select(0, chosen),
                    .labels = problem.labels.index_select(0, chosen)};
    if (problem.held_out.defined()) batch.held_out = problem.held_out.index_select(0, chosen);
    regression.train(batch);
  }
  regression.end_pass();
}

LinearClassifier trained(const Problem& problem, const PreconditionedOptions& options) {
  PreconditionedRegression regression(options);
  for (int64_t i = 0; i < options.passes; ++i) {
    show_pass(regression, problem, static_cast<uint64_t>(i));
  }
  return regression.classifier();
}

double accuracy(const LinearClassifier& classifier, const Problem& problem) {
  const auto right = classifier.scores(problem.features).argmax(1) == problem.labels;
  return right.to(torch::kFloat64).mean().item<double>();
}

double loss(const LinearClassifier& classifier, const Problem& problem) {
  return torch::nll_loss(torch::log_softmax(classifier.scores(problem.features), 1), problem.labels)
      .item<double>();
}

TEST(PreconditionedRegression, ComesCloseToTheExactSolution) {
  const auto problem = noisy_problem(4000, 10);
  const auto other = noisy_problem(4000, 20);
  const auto exact = fit_logistic_regression(problem.features.to(torch::kFloat64), problem.labels,
                                             4, {.l2 = 1e-4, .max_iterations = 500});
  LinearClassifier single = exact;
  single.weight = exact.weight.to(torch::kFloat32);
  single.bias = exact.bias.to(torch::kFloat32);
  const auto found = trained(problem, {.classes = 4, .passes = 10, .l2 = {1e-4}});
  EXPECT_LT(loss(found, problem), loss(single, problem) + 0.02);
  EXPECT_GT(accuracy(found, other), accuracy(single, other) - 0.02);
  EXPECT_LT(accuracy(single, other), 0.95);
}

TEST(PreconditionedRegression, IgnoresScaleAndShiftOfAllFeatures) {
  const auto problem = noisy_problem(1000, 10);
  auto moved = problem;
  moved.features = problem.features * 1024 + 512;
  const auto plain = trained(problem, {.classes = 4, .l2 = kPenalties});
  const auto same = trained(moved, {.classes = 4, .l2 = kPenalties});
  const auto scores = plain.scores(problem.features);
  expect_close(same.scores(moved.features), scores, 0.05 * scores.abs().max().item<double>());
}

TEST(PreconditionedRegression, IsTheSameTwice) {
  const auto problem = noisy_problem(600, 10);
  const auto first = trained(problem, {.classes = 4, .l2 = kPenalties});
  EXPECT_TRUE(
      torch::equal(first.weight, trained(problem, {.classes = 4, .l2 = kPenalties}).weight));
}

TEST(PreconditionedRegression, WithCandidatesEndsLikeTheChosenOneAlone) {
  auto problem = noisy_problem(2000, 10);
  problem.held_out = torch::arange(2000) % 10 == 0;
  PreconditionedRegression several({.classes = 4, .passes = 3, .l2 = {30, 1e-3}});
  PreconditionedRegression alone({.classes = 4, .passes = 3, .l2 = {1e-3}});
  for (uint64_t pass = 0; pass < 3; ++pass) {
    show_pass(several, problem, pass);
    show_pass(alone, problem, pass);
  }
  EXPECT_EQ(several.l2(), 1e-3);  // a penalty of 30 leaves next to nothing
  expect_close(several.classifier().weight, alone.classifier().weight, 1e-3);
}

TEST(PreconditionedRegression, TrainsOnWhatIsHeldOutInTheLastPassOnly) {
  // Class 1 is only in what is held out.
  Problem problem{.features = noise({4000, 3}, 1).to(torch::kFloat32), .labels = {}};
  problem.held_out = torch::arange(4000) % 10 == 0;
  problem.labels = problem.held_out.to(torch::kInt64);
  PreconditionedRegression regression({.classes = 2, .passes = 3, .l2 = {0.1}});
  for (uint64_t pass = 0; pass < 2; ++pass) show_pass(regression, problem, pass);
  PreconditionedRegression without({.classes = 2, .passes = 3, .l2 = {0.1}});
  auto never = problem;
  never.labels = torch::zeros_like(problem.labels);
  for (uint64_t pass = 0; pass < 2; ++pass) show_pass(without, never, pass);
  show_pass(regression, problem, 2);
  show_pass(without, never, 2);
  const auto lead = [](const LinearClassifier& found) {
    return (found.bias[1] - found.bias[0]).item<double>();
  };
  EXPECT_GT(lead(regression.classifier()), lead(without.classifier()) + 0.05);
}

TEST(PreconditionedRegression, OfConstantFeaturesNamesTheCommonestClass) {
  const Problem problem = {.features = torch::full({300, 5}, 3.F),
                           .labels = (torch::arange(300) % 3 == 0).to(torch::kInt64)};
  const auto found = trained(problem, {.classes = 2, .l2 = kPenalties});
  EXPECT_TRUE(torch::equal(found.weight, torch::zeros({2, 5})));
  EXPECT_NEAR(accuracy(found, problem), 2. / 3, 1e-12);
}

// The mean of these is not what each of them is, by rounding.
TEST(PreconditionedRegression, OfFeaturesThatOnlyRoundNamesTheCommonestClass) {
  Problem problem = {.features = torch::full({500, 64}, 0.1F),
                     .labels = (torch::arange(500) % 5 < 2).to(torch::kInt64)};
  problem.features.slice(1, 32) *= 1e6;
  ASSERT_FALSE(torch::equal(problem.features.mean(0), problem.features[0]));
  const auto found = trained(problem, {.classes = 2, .l2 = kPenalties});
  EXPECT_TRUE(torch::equal(found.weight, torch::zeros({2, 64})));
  EXPECT_NEAR(accuracy(found, problem), 0.6, 1e-12);
}

TEST(PreconditionedRegression, LearnsNothingFromTheRoundingOfLargeFeatures) {
  auto problem = noisy_problem(2000, 10);
  const auto alone = trained(problem, {.classes = 4, .l2 = kPenalties});
  const auto expected = accuracy(alone, problem);
  problem.features = torch::cat({problem.features, torch::full({2000, 20}, 12345678.9F)}, 1);
  const auto found = trained(problem, {.classes = 4, .l2 = kPenalties});
  EXPECT_TRUE(torch::equal(found.weight.slice(1, 20), torch::zeros({4, 20})));
  EXPECT_NEAR(accuracy(found, problem), expected, 0.02);
}

// A feature that was 0 in the first samples, which statistics are of.
TEST(PreconditionedRegression, LearnsFromFeaturesThatWakeUpLater) {
  const auto labels = torch::arange(4000) % 2;
  auto features = noise({4000, 3}, 1);
  features.select(1, 2).copy_(labels * (torch::arange(4000) >= 600));
  PreconditionedRegression regression({.classes = 2, .l2 = kPenalties});
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t begin = 0; begin < 4000; begin += 100) {
      regression.train({.features = features.narrow(0, begin, 100).to(torch::kFloat32),
                        .labels = labels.narrow(0, begin, 100)});
    }
    regression.end_pass();
  }
  const Problem late = {.features = features.slice(0, 600).to(torch::kFloat32),
                        .labels = labels.slice(0, 600)};
  EXPECT_GT(accuracy(regression.classifier(), late), 0.99);
}

// A few features tell the class; a thousand are active in one of a hundred samples and tell
// nothing. If each counted as much as any other, their noise would be fitted.
TEST(PreconditionedRegression, DoesNotFitTheNoiseOfRarelyActiveFeatures) {
  const auto draw = [](uint64_t seed) -> Problem {
    constexpr int64_t kSamples = 3000;
    const auto labels = torch::arange(kSamples) % 5;
    const auto telling = torch::one_hot(labels, 10) * 1.0 + 0.5 * noise({kSamples, 10}, seed);
    const auto rare = torch::relu(noise({kSamples, 1000}, seed + 1) - 2.3);
    return {.features = torch::cat({telling, rare}, 1).to(torch::kFloat32), .labels = labels};
  };
  const auto found = trained(draw(10), {.classes = 5, .l2 = {1e-3}});
  const auto others = draw(20);
  const Problem told = {.features = others.features.slice(1, 0, 10), .labels = others.labels};
  const auto seen = draw(10);
  const auto best =
      accuracy(trained({.features = seen.features.slice(1, 0, 10), .labels = seen.labels},
                       {.classes = 5, .l2 = kPenalties}),
               told);
  EXPECT_GT(accuracy(found, others), best - 0.12);
}

// Outliers, as channels of transformers have them: the penalty must not slow down all others.
TEST(PreconditionedRegression, LearnsBesideAFeatureThatVariesMuchMore) {
  auto problem = noisy_problem(4000, 10);
  const auto options = PreconditionedOptions{.classes = 4, .l2 = {1e-1}};
  const auto alone = accuracy(trained(problem, options), problem);
  const auto outlier = 1000 * problem.features.std() * noise({4000, 1}, 30);
  problem.features = torch::cat({problem.features, outlier.to(torch::kFloat32)}, 1);
  EXPECT_GT(accuracy(trained(problem, options), problem), alone - 0.03);
}

TEST(PreconditionedRegression, OfASingleFeatureHasNoDirectionToShorten) {
  const auto labels = torch::arange(600) % 2;
  const Problem problem = {
      .features = (4 * labels + noise({600}, 1)).unsqueeze(1).to(torch::kFloat32),
      .labels = labels};
  EXPECT_GT(accuracy(trained(problem, {.classes = 2, .passes = 6, .l2 = kPenalties}), problem),
            0.96);
}

TEST(PreconditionedRegression, TakesMoreFeaturesThanSamplesAndASingleMinibatch) {
  const auto labels = torch::arange(40) % 4;
  const Problem problem = {
      .features = (torch::one_hot(labels, 200) + 0.1 * noise({40, 200}, 1)).to(torch::kFloat32),
      .labels = labels};
  EXPECT_EQ(accuracy(trained(problem, {.classes = 4, .passes = 20, .l2 = kPenalties}), problem), 1);
}

TEST(PreconditionedRegression, RejectsWhatIsNotFinite) {
  for (const int64_t place : {3, 300, 900}) {  // among the first samples, and later
    auto problem = noisy_problem(1000, 10);
    problem.features[place][2] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(error_of([&] {
                PreconditionedRegression regression({.classes = 4, .l2 = kPenalties});
                for (int64_t begin = 0; begin < 1000; begin += 100) {
                  regression.train({.features = problem.features.narrow(0, begin, 100),
                                    .labels = problem.labels.narrow(0, begin, 100)});
                }
              }),
              "features must be finite");
  }
}

TEST(PreconditionedRegression, RejectsWhatItCannotTrain) {
  EXPECT_EQ(error_of([] { PreconditionedRegression({.classes = 1}); }),
            "PreconditionedRegression: needs at least 2 classes, got 1");
  EXPECT_EQ(error_of([] { PreconditionedRegression({.classes = 2, .passes = 1}); }),
            "PreconditionedRegression: needs at least 2 passes, got 1");
  EXPECT_EQ(error_of([] { PreconditionedRegression({.classes = 2}); }),
            "PreconditionedRegression: needs at least one penalty");
  EXPECT_EQ(error_of([] { PreconditionedRegression({.classes = 2, .l2 = kPenalties}).end_pass(); }),
            "PreconditionedRegression: nothing was shown");
  PreconditionedRegression regression({.classes = 4, .l2 = kPenalties});
  show_pass(regression, noisy_problem(100, 1), 0);
  EXPECT_EQ(error_of([&] { regression.classifier(); }),
            "PreconditionedRegression: was shown 1 of 2 passes");
}

Minibatch minibatch(uint64_t seed, int64_t samples = 32) {
  return {.features = noise({samples, 6}, seed).to(torch::kFloat32),
          .labels = torch::arange(samples) % 3};
}

TEST(AdamRegression, TakesTheStepsOfLibTorch) {
  AdamRegression regression({.classes = 3, .learning_rate = 0.01, .seed = 5});
  regression.train(minibatch(0));
  // A reference that goes on from there would lack Adam's averages: begin with the same weights.
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(5);
  const double bound = 1 / std::sqrt(6.);
  auto weight = torch::empty({3, 6}).uniform_(-bound, bound, generator).requires_grad_();
  auto bias = torch::empty({3}).uniform_(-bound, bound, generator).requires_grad_();
  torch::optim::Adam adam({weight, bias}, torch::optim::AdamOptions(0.01));
  for (uint64_t step = 0; step < 40; ++step) {
    const auto batch = minibatch(step);
    adam.zero_grad();
    torch::cross_entropy_loss(torch::addmm(bias, batch.features, weight.t()), batch.labels)
        .backward();
    adam.step();
    if (step > 0) regression.train(batch);
  }
  const auto found = regression.classifier();
  expect_close(found.weight, weight.detach(), 1e-5);
  expect_close(found.bias, bias.detach(), 1e-5);
  EXPECT_EQ(found.iterations, 40);
}

TEST(AdamRegression, BeginsFromItsSeed) {
  const auto after_one = [](uint64_t seed) {
    AdamRegression regression({.classes = 3, .seed = seed});
    regression.train(minibatch(0));
    return regression.classifier().weight;
  };
  EXPECT_TRUE(torch::equal(after_one(1), after_one(1)));
  EXPECT_FALSE(torch::equal(after_one(1), after_one(2)));
}

TEST(AdamRegression, RejectsWhatItCannotTrain) {
  EXPECT_EQ(error_of([] { AdamRegression({.classes = 1}); }),
            "AdamRegression: needs at least 2 classes, got 1");
  AdamRegression regression({.classes = 3});
  EXPECT_EQ(error_of([&] { regression.classifier(); }), "AdamRegression: nothing was shown");
  auto batch = minibatch(0);
  batch.features[1][2] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(error_of([&] { regression.train(batch); }), "features must be finite");
}

}  // namespace kelvin::streamed_regression_test
