#include "kelvin/numerics/logistic_regression.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::logistic_regression_test {

struct Problem {
  torch::Tensor features;
  torch::Tensor labels;
  int64_t classes;
};

// Labels of a noisy linear rule over correlated features: no rule gets all of them right.
Problem noisy_problem() {
  const auto features = noise({120, 6}, 0).matmul(noise({6, 6}, 1)) + 2;
  const auto scores = features.matmul(noise({6, 4}, 2)) + 3 * noise({120, 4}, 3);
  return {.features = features, .labels = scores.argmax(1), .classes = 4};
}

LinearClassifier fit(const Problem& problem, const LogisticRegressionOptions& options = {}) {
  return fit_logistic_regression(problem.features, problem.labels, problem.classes, options);
}

double objective(const Problem& problem, const LinearClassifier& classifier, double l2) {
  const auto logs = torch::log_softmax(classifier.scores(problem.features), 1);
  const auto loss = -logs.gather(1, problem.labels.unsqueeze(1)).mean();
  return (loss + 0.5 * l2 * classifier.weight.square().sum()).item<double>();
}

// Softmax ignores a constant added to all biases.
torch::Tensor centred(const torch::Tensor& bias) { return bias - bias.mean(); }

TEST(LogisticRegression, IsThatOfScikitLearn) {
  const auto problem = noisy_problem();
  // Newton's method: scikit-learn's L-BFGS stops three digits earlier.
  const auto expected = oracle(R"(
from sklearn.linear_model import LogisticRegression
for name, l2 in (("weak", 1e-3), ("strong", 0.3)):
    model = LogisticRegression(C=1 / (l2 * len(x["labels"])), solver="newton-cg", tol=1e-10,
                               max_iter=100)
    model.fit(x["features"], x["labels"])
    out[name + "_weight"] = model.coef_
    out[name + "_bias"] = model.intercept_
)",
                               {{"features", problem.features}, {"labels", problem.labels}});
  for (const auto& [name, l2] : {std::pair{std::string("weak"), 1e-3}, {"strong", 0.3}}) {
    SCOPED_TRACE(name);
    const auto ours = fit(problem, {.l2 = l2, .max_iterations = 1000, .tolerance = 1e-7});
    EXPECT_TRUE(ours.converged);
    LinearClassifier theirs;
    theirs.weight = expected.at(name + "_weight");
    theirs.bias = expected.at(name + "_bias");
    EXPECT_NEAR(objective(problem, ours, l2), objective(problem, theirs, l2), 1e-9);
    expect_close(ours.weight, theirs.weight, 1e-4);
    expect_close(centred(ours.bias), centred(theirs.bias), 1e-4);
  }
}

TEST(LogisticRegression, OfAFeatureThatSaysNothingFindsTheShares) {
  const Problem problem = {.features = torch::zeros({8, 1}, torch::kFloat64),
                           .labels = labels_of({0, 0, 0, 0, 0, 1, 1, 2}),
                           .classes = 3};
  const auto classifier = fit(problem, {.tolerance = 1e-10});
  expect_close(classifier.weight, torch::zeros({3, 1}), 1e-12);
  expect_close(torch::softmax(classifier.bias, 0), doubles({5. / 8, 2. / 8, 1. / 8}), 1e-8);
}

TEST(LogisticRegression, ScoresAreFeaturesTimesWeightPlusBias) {
  LinearClassifier classifier;
  classifier.weight = torch::tensor({{1.0, 2.0}, {0.0, -1.0}, {3.0, 0.0}});
  classifier.bias = torch::tensor({0.5, 0.0, -1.0});
  expect_close(classifier.scores(torch::tensor({{10.0, 1.0}})), torch::tensor({{12.5, -1.0, 29.0}}),
               0);
}

TEST(LogisticRegression, ShiftedFeaturesLeaveTheWeightsAlone) {
  const auto problem = noisy_problem();
  auto shifted = problem;
  shifted.features = problem.features + noise({6}, 4);
  const LogisticRegressionOptions options{.l2 = 1e-2, .max_iterations = 1000, .tolerance = 1e-9};
  expect_close(fit(shifted, options).weight, fit(problem, options).weight, 1e-6);
}

TEST(LogisticRegression, IgnoresTheOrderOfTheSamples) {
  const auto problem = noisy_problem();
  const Problem flipped = {.features = problem.features.flip(0),
                           .labels = problem.labels.flip(0),
                           .classes = problem.classes};
  const LogisticRegressionOptions options{.l2 = 1e-2, .max_iterations = 1000, .tolerance = 1e-9};
  expect_close(fit(flipped, options).weight, fit(problem, options).weight, 1e-6);
}

TEST(LogisticRegression, GoesOnWithMoreSamples) {
  const auto problem = noisy_problem();
  const LogisticRegressionOptions options{.l2 = 1e-2, .max_iterations = 1000, .tolerance = 1e-9};
  LogisticRegression regression(problem.features.narrow(0, 0, 50), problem.labels.narrow(0, 0, 50),
                                problem.classes);
  const auto few = regression.fit(options);
  regression.extend_to(problem.features, problem.labels);
  const auto all = regression.fit(options, &few);
  expect_close(all.weight, fit(problem, options).weight, 1e-6);
  EXPECT_FALSE(torch::allclose(few.weight, all.weight, 0, 1e-2));
  EXPECT_EQ(error_of([&] { regression.extend_to(problem.features.narrow(0, 0, 9), {}); }),
            "fit_logistic_regression: more samples must be at least [120, 6], got [9, 6]");
}

TEST(LogisticRegression, GivesTheSameBitsTwice) {
  const auto problem = noisy_problem();
  const auto first = fit(problem);
  const auto second = fit(problem);
  EXPECT_TRUE(torch::equal(first.weight, second.weight));
  EXPECT_TRUE(torch::equal(first.bias, second.bias));
  EXPECT_EQ(first.iterations, second.iterations);
}

TEST(LogisticRegression, InSinglePrecisionComesCloseToDouble) {
  auto problem = noisy_problem();
  const auto expected = fit(problem);
  problem.features = problem.features.to(torch::kFloat32);
  const auto classifier = fit(problem);
  EXPECT_EQ(classifier.weight.scalar_type(), torch::kFloat32);
  expect_close(classifier.weight, expected.weight, 1e-2);
}

TEST(LogisticRegression, SeparatesWhatIsSeparable) {
  const Problem problem = {.features = torch::eye(5, torch::kFloat64).repeat({3, 1}),
                           .labels = torch::arange(5).repeat({3}),
                           .classes = 5};
  const auto classifier = fit(problem);
  EXPECT_TRUE(classifier.converged);
  EXPECT_TRUE(torch::equal(classifier.scores(problem.features).argmax(1), problem.labels));
}

TEST(LogisticRegression, SharesTheWeightBetweenCopiesOfAFeature) {
  auto problem = noisy_problem();
  problem.features = torch::cat({problem.features, problem.features}, 1);
  const auto classifier = fit(problem, {.l2 = 1e-2, .max_iterations = 1000, .tolerance = 1e-8});
  EXPECT_TRUE(classifier.converged);
  expect_close(classifier.weight.narrow(1, 0, 6), classifier.weight.narrow(1, 6, 6), 1e-5);
}

TEST(LogisticRegression, TakesOneSample) {
  const Problem problem = {
      .features = doubles({1, -1}).unsqueeze(0), .labels = labels_of({1}), .classes = 2};
  EXPECT_EQ(fit(problem).scores(problem.features).argmax(1).item<int64_t>(), 1);
}

TEST(LogisticRegression, FromItsOwnSolutionIsDoneAtOnce) {
  const auto problem = noisy_problem();
  const auto solution = fit(problem);
  ASSERT_TRUE(solution.converged);
  EXPECT_GT(solution.iterations, 1);
  const auto again =
      fit_logistic_regression(problem.features, problem.labels, problem.classes, {}, &solution);
  EXPECT_TRUE(again.converged);
  EXPECT_EQ(again.iterations, 0);
  EXPECT_TRUE(torch::equal(again.weight, solution.weight));
  EXPECT_TRUE(torch::equal(again.bias, solution.bias));
}

TEST(LogisticRegression, SaysWhenItRanOutOfIterations) {
  const auto classifier = fit(noisy_problem(), {.max_iterations = 2});
  EXPECT_FALSE(classifier.converged);
  EXPECT_EQ(classifier.iterations, 2);
}

TEST(LogisticRegression, RejectsWhatItCannotFit) {
  const auto features = torch::ones({3, 2});
  const auto labels = labels_of({0, 1, 2});
  const auto fitting = [](const torch::Tensor& x, const torch::Tensor& y, int64_t classes,
                          const LogisticRegressionOptions& options = {}) {
    return error_of([&] { fit_logistic_regression(x, y, classes, options); });
  };
  EXPECT_EQ(fitting(torch::ones({3}), labels, 3),
            "fit_logistic_regression: features must be floating [samples, dims], got [3]");
  EXPECT_EQ(fitting(torch::ones({3, 2}, torch::kInt64), labels, 3),
            "fit_logistic_regression: features must be floating [samples, dims], got [3, 2]");
  EXPECT_EQ(fitting(torch::ones({0, 2}), labels.slice(0, 0, 0), 3),
            "fit_logistic_regression: features must be floating [samples, dims], got [0, 2]");
  EXPECT_EQ(fitting(features, labels_of({0, 1}), 3),
            "fit_logistic_regression: labels must be [3], got [2]");
  EXPECT_EQ(fitting(features, labels_of({0, 0, 0}), 1),
            "fit_logistic_regression: needs at least 2 classes, got 1");
  EXPECT_EQ(fitting(features, labels, 2), "fit_logistic_regression: labels must be in [0, 2)");
  EXPECT_EQ(fitting(features, labels_of({0, -1, 1}), 2),
            "fit_logistic_regression: labels must be in [0, 2)");
  EXPECT_EQ(fitting(features, labels, 3, {.l2 = -1}),
            "fit_logistic_regression: l2 must not be below 0, got -1");
  EXPECT_EQ(fitting(features * std::numeric_limits<double>::quiet_NaN(), labels, 3),
            "fit_logistic_regression: features must be finite");
  EXPECT_EQ(fitting(features * std::numeric_limits<double>::infinity(), labels, 3),
            "fit_logistic_regression: features must be finite");
}

}  // namespace kelvin::logistic_regression_test
