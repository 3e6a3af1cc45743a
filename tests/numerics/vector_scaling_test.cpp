#include "kelvin/numerics/vector_scaling.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <string>

#include "kelvin/numerics/calibration.h"
#include "kelvin/numerics/temperature_scaling.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::vector_scaling_test {

struct Problem {
  torch::Tensor logits;
  torch::Tensor labels;
};

// Classes are scaled and shifted differently from what their labels ask for.
Problem uneven_problem(int64_t samples = 500, int64_t classes = 4) {
  const auto logits = 2 * noise({samples, classes}, 0) + noise({classes}, 1);
  const auto wanted = logits * (1.5 + 0.5 * noise({classes}, 2).tanh()) + 2 * noise({classes}, 3);
  const auto labels = (wanted + 3 * noise({samples, classes}, 4)).argmax(1);
  return {.logits = logits, .labels = labels};
}

// The same minimum by Newton's method with the whole Hessian, in the parameters as they are.
constexpr auto kNewton = R"(
from scipy.optimize import minimize
from scipy.special import log_softmax
m, y, l2 = x["logits"], x["labels"], float(x["l2"])
n, classes = m.shape
mean, deviation, target = m.mean(axis=0), m.std(axis=0), np.eye(classes)[y]
def parts(v):
    scale, bias = v[:classes], v[classes:]
    return scale, bias, log_softmax(m * scale + bias, axis=1)
def objective(v):
    scale, bias, logs = parts(v)
    penalty = np.sum((scale * deviation) ** 2) + np.sum((bias + scale * mean) ** 2)
    return -np.mean(np.sum(target * logs, axis=1)) + l2 / 2 * penalty
def gradient(v):
    scale, bias, logs = parts(v)
    error = (np.exp(logs) - target) / n
    shift = bias + scale * mean
    return np.concatenate([(error * m).sum(axis=0) + l2 * (scale * deviation ** 2 + shift * mean),
                           error.sum(axis=0) + l2 * shift])
def hessian(v):
    p = np.exp(parts(v)[2])
    rows = np.concatenate([p * m, p], axis=1)
    second = -rows.T @ rows / n
    for c in range(classes):
        own = np.stack([m[:, c], np.ones(n)])
        block = (own * p[:, c]) @ own.T / n
        block += l2 * np.array([[deviation[c] ** 2 + mean[c] ** 2, mean[c]], [mean[c], 1]])
        for i, a in enumerate((c, classes + c)):
            for j, b in enumerate((c, classes + c)):
                second[a, b] += block[i, j]
    return second
v = np.zeros(2 * classes)
v[:classes] = 0.1
for _ in range(100):
    step = np.linalg.lstsq(hessian(v), -gradient(v), rcond=1e-12)[0]
    size = 1.0
    while objective(v + size * step) > objective(v) and size > 1e-8: size /= 2
    v = v + size * step
check = minimize(objective, np.zeros(2 * classes), jac=gradient, method="BFGS",
                 options={"gtol": 1e-7})
assert abs(objective(v) - check.fun) < 1e-10, (objective(v), check.fun)
out["scale"], out["bias"] = v[:classes], v[classes:] - v[classes:].mean()
out["nll"] = -np.mean(np.sum(target * parts(v)[2], axis=1))
)";

TEST(VectorScaling, IsThatOfSciPy) {
  const auto [logits, labels] = uneven_problem();
  for (const double l2 : {1e-6, 1e-2}) {
    SCOPED_TRACE(l2);
    const auto expected = oracle(
        kNewton,
        {{"logits", logits}, {"labels", labels}, {"l2", torch::tensor(l2, torch::kFloat64)}});
    const auto fitted = fit_vector_scaling(logits, labels, {.l2 = l2, .tolerance = 1e-10});
    EXPECT_TRUE(fitted.converged);
    EXPECT_LE(fitted.gradient, 1e-10);
    expect_close(fitted.scale, expected.at("scale"), 1e-7);
    expect_close(fitted.bias, expected.at("bias"), 1e-7);
    EXPECT_NEAR(fitted.nll, expected.at("nll").item<double>(), 1e-10);
  }
}

TEST(VectorScaling, RecoversScaleAndBiasThatFrequenciesFit) {
  // Two classes, of which only differences matter: the probability of the first is a logistic
  // function of its logit, at three places with the frequencies 1/4, 1/2 and 3/4.
  const auto logits =
      torch::tensor({{-1.0, 0.0}, {0.0, 0.0}, {1.0, 0.0}}, torch::kFloat64).repeat_interleave(4, 0);
  const auto labels = labels_of({0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1});
  const auto fitted = fit_vector_scaling(logits, labels, {.l2 = 0, .tolerance = 1e-11});
  ASSERT_TRUE(fitted.converged);
  EXPECT_NEAR(fitted.scale[0].item<double>(), std::log(3), 1e-8);
  expect_close(fitted.bias, doubles({0, 0}), 1e-8);
  // Logits of the second class are all the same: their scale means nothing and stays 0.
  EXPECT_EQ(fitted.scale[1].item<double>(), 0);
}

TEST(VectorScaling, TellsTheLikelihoodOfWhatItScales) {
  const auto [logits, labels] = uneven_problem();
  const auto fitted = fit_vector_scaling(logits, labels);
  ASSERT_TRUE(fitted.converged);
  EXPECT_NEAR(calibration_quality(fitted.scaled(logits), labels).nll, fitted.nll, 1e-12);
  expect_close(fitted.scaled(logits.slice(0, 0, 1)),
               logits.slice(0, 0, 1) * fitted.scale + fitted.bias, 0);
  EXPECT_NEAR(fitted.bias.sum().item<double>(), 0, 1e-12);
}

TEST(VectorScaling, IsNotWorseThanATemperatureOnWhatItIsFittedOn) {
  const auto [logits, labels] = uneven_problem();
  const auto tempered = fit_temperature(logits, labels);
  ASSERT_TRUE(tempered.converged);
  EXPECT_LT(fit_vector_scaling(logits, labels).nll, tempered.nll - 1e-2);
}

TEST(VectorScaling, UndoesAScaleAndAShiftOfEachClass) {
  const auto [logits, labels] = uneven_problem();
  const auto expected = fit_vector_scaling(logits, labels, {.tolerance = 1e-10});
  const auto factor = torch::logspace(-3, 6, 4, 10, torch::kFloat64);
  const auto shift = 100 * factor * noise({4}, 5);
  const auto changed = logits * factor + shift;
  const auto fitted = fit_vector_scaling(changed, labels, {.tolerance = 1e-10});
  ASSERT_TRUE(fitted.converged);
  expect_close(fitted.scale * factor, expected.scale, 1e-7);
  EXPECT_NEAR(fitted.nll, expected.nll, 1e-12);
}

TEST(VectorScaling, GivesTheSameBitsTwice) {
  const auto [logits, labels] = uneven_problem();
  const auto first = fit_vector_scaling(logits, labels);
  const auto second = fit_vector_scaling(logits, labels);
  EXPECT_TRUE(torch::equal(first.scale, second.scale));
  EXPECT_TRUE(torch::equal(first.bias, second.bias));
  EXPECT_EQ(first.iterations, second.iterations);
}

// Many classes, most of them rare, and more logits than are looked at at a time.
TEST(VectorScaling, ConvergesForManyClasses) {
  const auto [logits, labels] = uneven_problem(3000, 120);
  const auto fitted = fit_vector_scaling(logits, labels);
  EXPECT_TRUE(fitted.converged) << fitted.gradient;
  EXPECT_LE(fitted.gradient, 1e-8);
  EXPECT_LT(fitted.nll, fit_temperature(logits, labels).nll);
}

TEST(VectorScaling, OfWhatIsAlwaysRightIsBoundByThePenalty) {
  const auto logits = noise({60, 3}, 6);
  const auto fitted = fit_vector_scaling(logits, logits.argmax(1));
  EXPECT_TRUE(fitted.converged);
  EXPECT_TRUE(torch::isfinite(fitted.scale).all().item<bool>());
  EXPECT_LT(fitted.nll, 0.05);
}

TEST(VectorScaling, OfAClassWithoutSamplesStaysFinite) {
  const auto [logits, labels] = uneven_problem();
  const auto fitted = fit_vector_scaling(logits, labels.clamp(0, 2));
  EXPECT_TRUE(fitted.converged);
  EXPECT_TRUE(torch::isfinite(fitted.bias).all().item<bool>());
  // Nobody expects the last class any more.
  const auto shares = torch::softmax(fitted.scaled(logits), 1);
  EXPECT_LT(shares.select(1, 3).mean().item<double>(), 1e-3);
}

TEST(VectorScaling, OfLogitsThatSayNothingFindsTheFrequencies) {
  const auto labels = labels_of({0, 0, 0, 0, 0, 1, 1, 2});
  const auto fitted =
      fit_vector_scaling(torch::full({8, 3}, 7.F), labels, {.l2 = 0, .tolerance = 1e-11});
  ASSERT_TRUE(fitted.converged);
  expect_close(torch::softmax(fitted.bias, 0), doubles({5. / 8, 2. / 8, 1. / 8}), 1e-9);
  expect_close(fitted.scale, torch::zeros({3}), 0);
}

TEST(VectorScaling, SaysThatItHasNotConverged) {
  const auto [logits, labels] = uneven_problem();
  const auto fitted = fit_vector_scaling(logits, labels, {.max_iterations = 2});
  EXPECT_FALSE(fitted.converged);
  EXPECT_EQ(fitted.iterations, 2);
  EXPECT_GT(fitted.gradient, 1e-8);
}

TEST(VectorScaling, RejectsWhatItCannotUse) {
  const auto logits = torch::zeros({2, 3}, torch::kFloat64);
  const auto labels = labels_of({0, 1});
  EXPECT_EQ(error_of([&] { fit_vector_scaling(logits / 0, labels); }),
            "fit_vector_scaling: logits must be finite, have a NaN or an infinity");
  EXPECT_EQ(error_of([&] {
              fit_vector_scaling(logits, labels_of({0, 3}));
            }),
            "fit_vector_scaling: labels must be in [0, 3), got 3 for sample 1");
  EXPECT_EQ(error_of([&] { fit_vector_scaling(logits, labels, {.l2 = -1}); }),
            "fit_vector_scaling: l2 must not be below 0, got -1");
  EXPECT_EQ(
      error_of([&] {
        fit_vector_scaling(torch::tensor({{1e308}, {-1e308}}, torch::kFloat64), labels_of({0, 0}));
      }),
      "fit_vector_scaling: logits of a class differ by more than double precision can hold");
}

}  // namespace kelvin::vector_scaling_test
