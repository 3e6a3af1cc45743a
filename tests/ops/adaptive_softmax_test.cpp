#include "kelvin/ops/adaptive_softmax.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kelvin/ops/reference_ops.h"
#include "tests/support/errors.h"
#include "tests/support/gradients.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"
#include "tests/support/threads.h"

namespace kelvin::adaptive_softmax_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPeak = 4.4125;  // entropy of the published polynomial's maximum
constexpr double kBetaAtPeak = 2.42139;

torch::Tensor exact(const torch::Tensor& logits, const AdaptiveSoftmaxOptions& options = {}) {
  return adaptive_softmax(logits.to(torch::kFloat64), options);
}

TEST(AdaptiveSoftmax, AgreesWithNumPy) {
  const auto logits =
      noise({60, 70}, 1) * torch::logspace(-2, 1, 60, 10, torch::kFloat64).view({-1, 1});
  const auto expected = oracle(R"(
z = x["logits"]
def softmax(z):
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)
p = softmax(z)
h = -(p * np.log(p)).sum(1, keepdims=True)
b = np.polyval([-0.037, 0.481, -2.3, 4.917, -1.791], h)
b = np.where(h > 0.5, np.maximum(b, 1), 1)
q = softmax(b * z)
out["q"], out["h"], out["b"] = q, h[:, 0], b[:, 0]
out["spread"], out["top"] = z.max(1) - z.min(1), q.max(1)
)",
                               {{"logits", logits}});
  for (const auto type : {torch::kFloat64, torch::kFloat32}) {
    const auto values = adaptive_softmax_values(logits.to(type));
    const double tolerance = type == torch::kFloat64 ? 1e-12 : 1e-6;
    EXPECT_EQ(values.entropies.scalar_type(), type);
    expect_close(values.probabilities, expected.at("q"), tolerance);
    expect_close(values.entropies, expected.at("h"), 3 * tolerance);
    expect_close(values.betas, expected.at("b"), 10 * tolerance);
    expect_close(values.spreads, expected.at("spread"), 50 * tolerance);
    expect_close(values.top_weights, expected.at("top"), tolerance);
  }
  EXPECT_GT(expected.at("b").max().item<double>(), 2.4);
  EXPECT_EQ(expected.at("b").min().item<double>(), 1);
}

TEST(AdaptiveSoftmax, OfRowsOfAnyLengthIsThatOfDoublePrecision) {
  for (const int64_t columns : {1, 2, 7, 16, 100, 257, 4096, 16384, 65536}) {
    for (const double scale : {1.0, 4.0}) {
      const auto logits = (scale * noise({5, columns}, 2)).to(torch::kFloat32);
      expect_close(adaptive_softmax(logits), exact(logits), 1e-6);
    }
  }
}

TEST(AdaptiveSoftmax, HasEveryOptionInTheKernelAsInItsParts) {
  const auto logits = (3 * noise({40, 300}, 3)).to(torch::kFloat32);
  const auto flat = torch::zeros({2, 3000});
  for (const auto past : {PastThePeak::fall, PastThePeak::hold, PastThePeak::grow}) {
    for (const double temperature : {0.5, 1.0, 20.0}) {
      const AdaptiveSoftmaxOptions options{.coefficients = {-0.01, 0.2, -1, 2.5, 0.3},
                                           .floor = 0.8,
                                           .threshold = 0.2,
                                           .past_the_peak = past,
                                           .temperature = temperature};
      const auto values = adaptive_softmax_values(logits, options);
      const auto expected = adaptive_softmax_values(logits.to(torch::kFloat64), options);
      expect_close(values.probabilities, expected.probabilities, 1e-6);
      expect_close(values.betas, expected.betas, 1e-5);
      expect_close(adaptive_softmax_values(flat, {.past_the_peak = past}).betas,
                   adaptive_beta(torch::full({2}, std::log(3000.0)), {.past_the_peak = past}),
                   1e-5);
    }
  }
}

// What is too large or too small for the kernel is computed by its parts.
TEST(AdaptiveSoftmax, TakesOptionsOfAnySize) {
  const auto logits = noise({4, 9}, 4);
  for (const AdaptiveSoftmaxOptions& options :
       {AdaptiveSoftmaxOptions{.temperature = 1e-30}, AdaptiveSoftmaxOptions{.temperature = 1e30},
        AdaptiveSoftmaxOptions{.floor = 1e-30}, AdaptiveSoftmaxOptions{.floor = 1e30},
        AdaptiveSoftmaxOptions{.coefficients = {0, 0, 0, 0, 1e30}}}) {
    expect_close(adaptive_softmax(logits.to(torch::kFloat32), options), exact(logits, options),
                 1e-6);
  }
}

TEST(AdaptiveSoftmax, NeverRaisesAnEntropy) {
  for (const double scale : {0.01, 0.3, 1.0, 3.0, 10.0}) {
    for (const int64_t columns : {2, 16, 500}) {
      for (const auto past : {PastThePeak::fall, PastThePeak::hold, PastThePeak::grow}) {
        const auto logits = (scale * noise({200, columns}, 5)).to(torch::kFloat32);
        const auto values = adaptive_softmax_values(logits, {.past_the_peak = past});
        const auto after = torch::special_entr(values.probabilities).sum(-1);
        EXPECT_LE((after - values.entropies).max().item<double>(), 1e-5);
        EXPECT_GE(values.betas.min().item<double>(), 1);
      }
    }
  }
}

TEST(AdaptiveSoftmax, LeavesConfidentRowsAlone) {
  const auto logits = 30 * noise({50, 12}, 6);
  const auto values = adaptive_softmax_values(logits);
  const auto is_confident = values.entropies < 0.84;
  EXPECT_GT(is_confident.sum().item<int64_t>(), 30);
  expect_close(values.probabilities.index({is_confident}),
               torch::softmax(logits, -1).index({is_confident}), 1e-15);
}

TEST(AdaptiveSoftmax, SwitchesItselfOffForFlatLongRowsUnlessToldToHold) {
  const auto logits = (0.1 * noise({3, 1000}, 7)).to(torch::kFloat32);
  expect_close(adaptive_softmax(logits), torch::softmax(logits, -1), 1e-9);
  const auto held = adaptive_softmax(logits, {.past_the_peak = PastThePeak::hold});
  expect_close(held, torch::softmax(kBetaAtPeak * logits, -1), 1e-7);
}

TEST(AdaptiveSoftmax, SurvivesLogitsOfAnySize) {
  for (const auto type : {torch::kFloat32, torch::kFloat64, torch::kBFloat16}) {
    for (const double huge : {1e6, 1e30, 3e38}) {
      const auto tied = torch::tensor({-huge, huge, huge, 0.0}).to(type);
      expect_close(adaptive_softmax(tied), doubles({0, 0.5, 0.5, 0}), 0);
      const auto values = adaptive_softmax_values(torch::tensor({0.0, huge}).to(type));
      expect_close(values.probabilities, doubles({0, 1}), 0);
      EXPECT_EQ(values.entropies.item<double>(), 0);
      auto leaf = (huge / 10 * noise({6, 40}, 8)).to(type).requires_grad_();
      adaptive_softmax(leaf).square().sum().backward();
      EXPECT_TRUE(torch::isfinite(leaf.grad()).all().item<bool>());
    }
  }
}

TEST(AdaptiveSoftmax, SaysOfRowsWithoutLogitsThatThereIsNothing) {
  for (const auto type : {torch::kFloat32, torch::kFloat64, torch::kBFloat16}) {
    auto logits = noise({3, 20}, 9).to(type);
    logits[1].fill_(-kInfinity);
    const auto values = adaptive_softmax_values(logits);
    expect_close(values.probabilities[1], torch::zeros(20), 0);
    expect_close(values.entropies[1], torch::tensor(0), 0);
    expect_close(values.betas[1], torch::tensor(1), 0);
    expect_close(values.spreads[1], torch::tensor(0), 0);
    expect_close(values.top_weights[1], torch::tensor(0), 0);
    EXPECT_GT(values.entropies[0].item<double>(), 0);
  }
}

TEST(AdaptiveSoftmax, TakesNoNotOfMaskedLogits) {
  for (const auto type : {torch::kFloat32, torch::kFloat64, torch::kBFloat16}) {
    auto logits = noise({4, 6}, 10).to(type);
    const auto kept = labels_of({0, 2, 3, 5});
    const auto expected = adaptive_softmax_values(logits.index_select(1, kept));
    logits.index_fill_(1, labels_of({1, 4}), -kInfinity);
    const auto values = adaptive_softmax_values(logits);
    const double rounding = type == torch::kFloat64 ? 1e-15 : 1e-6;
    expect_close(values.probabilities.index_select(1, kept), expected.probabilities, rounding);
    expect_close(values.probabilities.index_select(1, labels_of({1, 4})), torch::zeros({4, 2}), 0);
    expect_close(values.entropies, expected.entropies, rounding);
    expect_close(values.spreads, expected.spreads, rounding);
  }
}

TEST(AdaptiveSoftmax, MakesNansOfRowsWithoutAMaximumAsSoftmaxDoes) {
  for (const auto type : {torch::kFloat32, torch::kFloat64, torch::kBFloat16}) {
    for (const double bad : {kInfinity, kNan}) {
      auto logits = noise({3, 20}, 11).to(type);
      logits[1][7] = bad;
      const auto result = adaptive_softmax(logits);
      EXPECT_TRUE(result.isnan().equal(torch::softmax(logits, -1).isnan()));
      EXPECT_EQ(result.isnan().sum().item<int64_t>(), 20);
      EXPECT_TRUE(adaptive_softmax_values(logits).betas[1].isnan().item<bool>());
    }
  }
}

TEST(AdaptiveSoftmax, RoundsInHalfPrecisionAtTheEndOnly) {
  for (const auto type : {torch::kBFloat16, torch::kHalf}) {
    const auto logits = (2 * noise({30, 50}, 12)).to(type);
    const auto wide = adaptive_softmax_values(logits.to(torch::kFloat32));
    const auto values = adaptive_softmax_values(logits);
    EXPECT_EQ(values.probabilities.scalar_type(), type);
    EXPECT_EQ(values.betas.scalar_type(), torch::kFloat32);
    EXPECT_TRUE(values.probabilities.equal(wide.probabilities.to(type)));
    EXPECT_TRUE(values.betas.equal(wide.betas));
  }
}

TEST(AdaptiveSoftmax, HasTheSameBitsOnAnyNumberOfThreads) {
  for (const int64_t columns : {16, 100, 5000}) {
    const auto logits = (3 * noise({200000 / columns, columns}, 13)).to(torch::kFloat32);
    std::vector<torch::Tensor> results;
    std::vector<torch::Tensor> gradients;
    for (const int threads : {1, 2, 4}) {
      const ThreadCount count(threads);
      auto leaf = logits.clone().requires_grad_();
      results.push_back(adaptive_softmax(leaf));
      results.back().square().sum().backward();
      gradients.push_back(leaf.grad());
    }
    for (size_t i = 1; i < results.size(); ++i) {
      EXPECT_TRUE(results[i].equal(results[0]));
      EXPECT_TRUE(gradients[i].equal(gradients[0]));
    }
  }
}

TEST(AdaptiveSoftmax, GradientIsThatOfCentralDifferences) {
  for (const double scale : {0.3, 1.0, 2.5}) {
    for (const double temperature : {1.0, 0.5}) {
      for (const auto past : {PastThePeak::fall, PastThePeak::hold, PastThePeak::grow}) {
        const AdaptiveSoftmaxOptions options{.past_the_peak = past, .temperature = temperature};
        expect_gradient(
            [&](const torch::Tensor& logits) { return adaptive_softmax(logits, options); },
            scale * noise({3, 9}, 14));
      }
    }
  }
}

torch::Tensor gradient(const torch::Tensor& logits, const torch::Tensor& weights,
                       const AdaptiveSoftmaxOptions& options = {}) {
  auto leaf = logits.clone().requires_grad_();
  (adaptive_softmax(leaf, options) * weights.to(leaf.scalar_type())).sum().backward();
  EXPECT_EQ(leaf.grad().scalar_type(), logits.scalar_type());
  return leaf.grad();
}

// Largest distance, as part of the largest entry if that is above 1.
double worst(const torch::Tensor& ours, const torch::Tensor& expected) {
  const double largest = expected.abs().max().item<double>();
  return (ours.to(torch::kFloat64) - expected).abs().max().item<double>() / std::max(1.0, largest);
}

TEST(AdaptiveSoftmax, GradientOfTheKernelIsThatOfItsParts) {
  for (const int64_t columns : {1, 5, 16, 100, 3000}) {
    for (const AdaptiveSoftmaxOptions& options :
         {AdaptiveSoftmaxOptions{}, AdaptiveSoftmaxOptions{.temperature = 0.5},
          AdaptiveSoftmaxOptions{.past_the_peak = PastThePeak::grow},
          AdaptiveSoftmaxOptions{.detach_beta = true}}) {
      auto logits = (2 * noise({12, columns}, 15)).to(torch::kFloat32);
      if (columns > 3) logits.select(1, 2).fill_(-kInfinity);
      const auto weights = noise({12, columns}, 16).to(torch::kFloat32);
      const auto expected = gradient(logits.to(torch::kFloat64), weights, options);
      EXPECT_LT(worst(gradient(logits, weights, options), expected), 3e-6) << columns;
      const auto rounded = logits.to(torch::kBFloat16);
      const auto close =
          gradient(rounded.to(torch::kFloat64), weights.to(torch::kBFloat16), options);
      EXPECT_LT(worst(gradient(rounded, weights, options), close), 1.0 / 256) << columns;
    }
  }
}

TEST(AdaptiveSoftmax, GradientTakesBetaForAConstantIfItIsDetached) {
  const auto logits = noise({4, 9}, 17);
  const auto weights = noise({4, 9}, 18);
  const auto betas = adaptive_softmax_values(logits).betas.unsqueeze(-1);
  auto leaf = logits.clone().requires_grad_();
  (torch::softmax(betas * leaf, -1) * weights).sum().backward();
  expect_close(gradient(logits, weights, {.detach_beta = true}), leaf.grad(), 1e-14);
  const auto difference = gradient(logits, weights) - leaf.grad();
  EXPECT_GT(difference.abs().max().item<double>(), 1e-2);
}

TEST(AdaptiveSoftmax, IsTheSameWithReferenceOpsWhichHaveSecondDerivatives) {
  const auto logits = noise({4, 9}, 19).to(torch::kFloat32);
  const auto kernel = adaptive_softmax(logits);
  {
    const ReferenceOpsScope path(true);
    expect_close(adaptive_softmax(logits), kernel, 3e-7);
    const auto leaf = logits.clone().requires_grad_();
    const auto sum = adaptive_softmax(leaf).square().sum();
    torch::autograd::grad({sum}, {leaf}, {}, /*retain_graph=*/true, /*create_graph=*/true);
  }
  const auto leaf = logits.clone().requires_grad_();
  const auto sum = adaptive_softmax(leaf).square().sum();
  EXPECT_EQ(error_of([&] {
              torch::autograd::grad({sum}, {leaf}, {}, /*retain_graph=*/true,
                                    /*create_graph=*/true);
            }),
            "adaptive_softmax: has first derivatives only; those of higher order need a "
            "ReferenceOpsScope");
}

TEST(AdaptiveSoftmax, TakesTensorsOfAnyShapeAndStride) {
  const auto logits = noise({4, 3, 20}, 20).to(torch::kFloat32);
  const auto values = adaptive_softmax_values(logits);
  EXPECT_EQ(values.entropies.sizes(), (torch::IntArrayRef{4, 3}));
  const auto turned = logits.transpose(0, 2);
  EXPECT_TRUE(adaptive_softmax(turned).equal(adaptive_softmax(turned.contiguous())));
  EXPECT_TRUE(adaptive_softmax(logits[1][2]).equal(values.probabilities[1][2]));
  EXPECT_EQ(adaptive_softmax_values(logits[1][2]).betas.dim(), 0);
  EXPECT_EQ(adaptive_softmax(torch::zeros({0, 5})).sizes(), (torch::IntArrayRef{0, 5}));
  EXPECT_EQ(adaptive_softmax_values(torch::zeros({2, 0, 5})).spreads.sizes(),
            (torch::IntArrayRef{2, 0}));
}

TEST(AdaptiveSoftmax, RejectsOptionsThatMakeNoSense) {
  const auto refusal = [](const AdaptiveSoftmaxOptions& options) {
    return error_of([&] { adaptive_softmax(doubles({1, 2}), options); });
  };
  EXPECT_EQ(refusal({.temperature = 0}),
            "adaptive_softmax: temperature must be a finite number above 0, got 0");
  EXPECT_EQ(refusal({.floor = 0}),
            "adaptive_softmax: the floor of beta must be a finite number above 0, got 0");
  EXPECT_EQ(refusal({.threshold = -1}),
            "adaptive_softmax: the threshold of the entropy must not be negative, got -1");
  EXPECT_EQ(refusal({.coefficients = {1, 2, 3, 4, kNan}}),
            "adaptive_softmax: the coefficients of beta must be finite numbers");
  EXPECT_EQ(error_of([] {
              adaptive_softmax_values(labels_of({1, 2}));
            }),
            "adaptive_softmax_values: logits must be floating-point numbers, are long int");
}

}  // namespace kelvin::adaptive_softmax_test
