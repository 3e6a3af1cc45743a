#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <functional>

#include "tests/support/tensors.h"

namespace kelvin {

// The gradient of a random sum over `function` at `point`, entry by entry, is that of central
// differences in double precision.
inline void expect_gradient(const std::function<torch::Tensor(const torch::Tensor&)>& function,
                            const torch::Tensor& point) {
  const auto weights = noise(function(point).sizes().vec(), 4);
  const auto loss = [&](const torch::Tensor& at) { return (weights * function(at)).sum(); };
  auto leaf = point.clone().requires_grad_();
  loss(leaf).backward();

  constexpr double kStep = 1e-5;
  auto expected = torch::empty_like(point);
  for (int64_t i = 0; i < point.numel(); ++i) {
    auto step = torch::zeros_like(point);
    step.view(-1)[i] = kStep;
    expected.view(-1)[i] = (loss(point + step) - loss(point - step)) / (2 * kStep);
  }
  EXPECT_GT(expected.abs().max().item<double>(), 1e-2);
  expect_close(leaf.grad(), expected, 1e-7);
}

}  // namespace kelvin
