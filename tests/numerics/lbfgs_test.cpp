#include "kelvin/numerics/lbfgs.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/tensors.h"

namespace kelvin::lbfgs_test {

torch::Tensor unchanged(const torch::Tensor& gradient) { return gradient; }

// 1/2 (x - centre)^T H (x - centre).
DifferentiableFunction quadratic(const torch::Tensor& hessian, const torch::Tensor& centre) {
  return [=](const torch::Tensor& parameters, torch::Tensor& gradient) {
    const auto distance = parameters - centre;
    gradient = hessian.matmul(distance);
    return 0.5 * distance.dot(gradient).item<double>();
  };
}

TEST(Lbfgs, FindsTheCentreOfAQuadratic) {
  const auto factor = noise({12, 12}, 0);
  const auto hessian = factor.matmul(factor.t()) + 0.1 * torch::eye(12, torch::kFloat64);
  const auto centre = noise({12}, 1);
  const auto found =
      lbfgs_minimum(quadratic(hessian, centre), torch::zeros({12}, torch::kFloat64), unchanged,
                    {.max_iterations = 500, .tolerance = 1e-9, .least_curvature = 0});
  EXPECT_TRUE(found.converged);
  EXPECT_LE(found.gradient.abs().max().item<double>(), 1e-9);
  expect_close(found.parameters, centre, 1e-7);
  EXPECT_NEAR(found.value, 0, 1e-15);
}

// A right guess of the inverse Hessian leaves nothing to learn.
TEST(Lbfgs, TakesOneStepIfTheGuessIsTheInverseHessian) {
  const auto hessian = torch::diag(doubles({1e-4, 1, 1e4}));
  const auto inverse = torch::diag(doubles({1e4, 1, 1e-4}));
  const auto found =
      lbfgs_minimum(quadratic(hessian, doubles({3, -2, 1})), torch::zeros({3}, torch::kFloat64),
                    [&](const torch::Tensor& gradient) { return inverse.matmul(gradient); });
  EXPECT_TRUE(found.converged);
  EXPECT_EQ(found.iterations, 1);
  expect_close(found.parameters, doubles({3, -2, 1}), 1e-10);
}

TEST(Lbfgs, StopsAtOnceAtTheMinimum) {
  const auto centre = doubles({1, 2});
  const auto found =
      lbfgs_minimum(quadratic(torch::eye(2, torch::kFloat64), centre), centre, unchanged);
  EXPECT_TRUE(found.converged);
  EXPECT_EQ(found.iterations, 0);
}

TEST(Lbfgs, SaysThatItHasNotConverged) {
  const auto hessian = torch::diag(torch::logspace(0, 6, 20, 10, torch::kFloat64));
  const auto found =
      lbfgs_minimum(quadratic(hessian, noise({20}, 2)), torch::zeros({20}, torch::kFloat64),
                    unchanged, {.max_iterations = 3, .tolerance = 1e-9});
  EXPECT_FALSE(found.converged);
  EXPECT_EQ(found.iterations, 3);
  EXPECT_GT(found.gradient.abs().max().item<double>(), 1e-9);
}

// Next to the minimum, the noise of values is larger than what steps change.
TEST(Lbfgs, ComesCloserThanValuesCanTellIfItMayLookAtTheGradient) {
  const auto function = [](const torch::Tensor& parameters, torch::Tensor& gradient) {
    gradient = parameters.exp() - 2;
    const double noise = 1e-8 * std::sin(1e10 * parameters[0].item<double>());
    return (parameters.exp() - 2 * parameters).sum().item<double>() + noise;
  };
  const auto start = doubles({3, -1});
  LbfgsOptions options{.tolerance = 1e-12, .least_curvature = 0};
  EXPECT_FALSE(lbfgs_minimum(function, start, unchanged, options).converged);
  options.rounding = 1e-7;
  const auto found = lbfgs_minimum(function, start, unchanged, options);
  EXPECT_TRUE(found.converged);
  expect_close(found.parameters, doubles({std::log(2), std::log(2)}), 1e-12);
}

TEST(Lbfgs, HandsBackAStartThatIsNotFinite) {
  const auto found = lbfgs_minimum(
      [](const torch::Tensor& parameters, torch::Tensor& gradient) {
        gradient = parameters * NAN;
        return std::nan("");
      },
      torch::ones({2}, torch::kFloat64), unchanged);
  EXPECT_FALSE(found.converged);
  EXPECT_TRUE(std::isnan(found.value));
  expect_close(found.parameters, torch::ones({2}), 0);
}

}  // namespace kelvin::lbfgs_test
