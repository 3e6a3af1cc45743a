#include "kelvin/ops/cross_entropy.h"

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "kelvin/ops/reference_ops.h"
#include "kelvin/ops/softmax.h"
#include "tests/support/errors.h"
#include "tests/support/gradients.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::cross_entropy_test {

const torch::Tensor& one() {
  static const auto temperature = torch::tensor(1.);
  return temperature;
}

constexpr double kSmoothings[] = {0, 0.1};

struct Gradients {
  LossValues values;
  torch::Tensor logits;
  torch::Tensor temperature;
};

Gradients ours(const torch::Tensor& logits, const torch::Tensor& labels, double temperature,
               double smoothing) {
  const auto leaf = logits.clone().requires_grad_();
  const auto learnt = torch::tensor(temperature, torch::kFloat64).requires_grad_();
  auto values = tempered_cross_entropy(leaf, labels, learnt, {.smoothing = smoothing});
  values.loss.backward();
  return {.values = values, .logits = leaf.grad(), .temperature = learnt.grad()};
}

// In double precision; the largest logit goes first, which changes nothing but the rounding.
Gradients torchs(const torch::Tensor& logits, const torch::Tensor& labels, double temperature,
                 double smoothing) {
  const auto exact = logits.to(torch::kFloat64);
  const auto leaf = (exact - exact.amax(1, /*keepdim=*/true)).requires_grad_();
  const auto learnt = torch::tensor(temperature, torch::kFloat64).requires_grad_();
  using torch::nn::functional::cross_entropy;
  using Options = torch::nn::functional::CrossEntropyFuncOptions;
  const auto scores = leaf / learnt;
  Gradients result;
  result.values.loss = cross_entropy(scores, labels, Options().label_smoothing(smoothing));
  result.values.sample_losses =
      cross_entropy(scores, labels, Options().label_smoothing(smoothing).reduction(torch::kNone))
          .detach();
  const auto logs = torch::log_softmax(scores, 1).detach();
  result.values.entropies = -(logs.exp() * logs).sum(1);
  result.values.predictions = exact.argmax(1);
  result.values.loss.backward();
  result.logits = leaf.grad();
  result.temperature = learnt.grad();
  return result;
}

// |actual - expected| <= relative |expected| + floor, entry by entry.
void expect_within(const torch::Tensor& actual, const torch::Tensor& expected, double relative,
                   double floor) {
  const auto exact = expected.detach().to(torch::kFloat64);
  const auto excess =
      (actual.detach().to(torch::kFloat64) - exact).abs() - relative * exact.abs() - floor;
  EXPECT_LE(excess.max().item<double>(), 0);
}

class CrossEntropyOverScales : public testing::TestWithParam<int64_t> {
 protected:
  // `unit` is what the type rounds by; the exponents (z - max) / T carry three such roundings.  A
  // probability p = exp(x) / S is then wrong by p |x| <= 1/e of them at most, the logarithm of S by
  // the sum of p |x| <= ln C: beside the relative error there is this floor.
  void expect_torchs(torch::ScalarType type, double relative, double unit) const {
    const int64_t classes = GetParam();
    const int64_t samples = 6;
    const auto labels = torch::arange(samples) * 7 % classes;
    const double floor = 4 * unit * (1 + std::log(static_cast<double>(classes)));
    for (const double temperature : {1e-3, 1e-2, .1, 1., 10., 1e2, 1e3, 1e4}) {
      for (const double scale : {1e-3, 1., 1e3, 1e6}) {
        SCOPED_TRACE(testing::Message() << "T = " << temperature << ", logits of " << scale);
        const auto logits = (scale * noise({samples, classes}, 3)).to(type);
        for (const double smoothing : kSmoothings) {
          const auto actual = ours(logits, labels, temperature, smoothing);
          const auto expected = torchs(logits, labels, temperature, smoothing);
          expect_within(actual.values.loss, expected.values.loss, relative, floor);
          expect_within(actual.values.sample_losses, expected.values.sample_losses, relative,
                        floor);
          expect_within(actual.values.entropies, expected.values.entropies, relative, floor);
          EXPECT_TRUE(actual.values.predictions.equal(expected.values.predictions));
          expect_within(actual.logits, expected.logits, relative,
                        floor / (temperature * static_cast<double>(samples)));
          expect_within(actual.temperature, expected.temperature, relative, floor / temperature);
        }
      }
    }
  }
};

TEST_P(CrossEntropyOverScales, IsTorchsInSinglePrecision) {
  expect_torchs(torch::kFloat32, 1e-6, std::ldexp(1, -24));
}

TEST_P(CrossEntropyOverScales, IsTorchsInDoublePrecision) {
  expect_torchs(torch::kFloat64, 1e-12, std::ldexp(1, -53));
}

TEST_P(CrossEntropyOverScales, OfEqualLogitsIsTheLogarithmOfTheClasses) {
  const int64_t classes = GetParam();
  const auto labels = labels_of({0, classes - 1, classes / 2});
  for (const double temperature : {1e-3, 1., 1e4}) {
    for (const double smoothing : kSmoothings) {
      const auto result =
          ours(torch::full({3, classes}, 4.5, torch::kFloat64), labels, temperature, smoothing);
      const double expected = std::log(static_cast<double>(classes));
      EXPECT_NEAR(result.values.loss.item<double>(), expected, 1e-12);
      expect_close(result.values.entropies, torch::full({3}, expected), 1e-6);
      EXPECT_NEAR(result.temperature.item<double>(), 0, 1e-12);
      EXPECT_EQ(result.values.predictions.sum().item<int64_t>(), 0);
    }
  }
}

TEST_P(CrossEntropyOverScales, HasAGradientWhoseRowsSumToZero) {
  const auto labels = torch::zeros({5}, torch::kInt64);
  for (const double smoothing : kSmoothings) {
    const auto result = ours(3 * noise({5, GetParam()}, 1), labels, 2, smoothing);
    expect_close(result.logits.sum(1), torch::zeros({5}), 1e-15);
  }
}

INSTANTIATE_TEST_SUITE_P(Classes, CrossEntropyOverScales,
                         testing::Values(1, 2, 10, 17, 100, 1000, 1003));

TEST(TemperedCrossEntropy, HasTheGradientsOfCentralDifferences) {
  const auto labels = labels_of({1, 3, 0});
  const auto logits = 2 * noise({3, 4}, 5);
  for (const double smoothing : kSmoothings) {
    for (const double value : {0.5, 1., 3.}) {
      const auto temperature = torch::tensor(value, torch::kFloat64);
      const CrossEntropyOptions options{.smoothing = smoothing};
      expect_gradient(
          [&](const torch::Tensor& at) {
            return tempered_cross_entropy(at, labels, temperature, options).loss;
          },
          logits);
      expect_gradient(
          [&](const torch::Tensor& at) {
            return tempered_cross_entropy(logits, labels, at, options).loss;
          },
          temperature);
    }
  }
}

TEST(TemperedCrossEntropy, AgreesWithNumPy) {
  const auto logits = 5 * noise({40, 12}, 6);
  const auto labels = torch::arange(40) % 12;
  const auto expected = oracle(R"(
z = x["logits"] / 2.5
p = np.exp(z - z.max(1, keepdims=True))
p /= p.sum(1, keepdims=True)
own = -np.log(p[np.arange(40), x["labels"]])
out["losses"] = 0.8 * own - 0.2 * np.log(p).mean(1)
out["entropies"] = -(p * np.log(p)).sum(1)
out["predictions"] = z.argmax(1)
)",
                               {{"logits", logits}, {"labels", labels}});
  const auto values = tempered_cross_entropy(logits, labels, torch::tensor(2.5, torch::kFloat64),
                                             {.smoothing = 0.2});
  expect_close(values.sample_losses, expected.at("losses"), 1e-12);
  expect_close(values.entropies, expected.at("entropies"), 1e-12);
  expect_close(values.predictions, expected.at("predictions"), 0);
  EXPECT_FALSE(values.loss.requires_grad());
}

TEST(TemperedCrossEntropy, KeepsSmallLossesOfConfidentSamples) {
  // 1 + exp(-20) is 1 in single precision.
  const auto result = ours(torch::tensor({{20.F, 0.F}}), labels_of({0}), 1, 0);
  const double expected = std::log1p(std::exp(-20.));
  EXPECT_NEAR(result.values.loss.item<double>() / expected, 1, 1e-6);
  EXPECT_NEAR(result.logits[0][0].item<double>() / -expected, 1, 1e-6);
  EXPECT_NEAR(result.logits[0][1].item<double>() / expected, 1, 1e-6);
}

TEST(TemperedCrossEntropy, PredictsTheFirstOfTheLargest) {
  auto logits = torch::zeros({3, 40});
  logits[0][33] = logits[0][20] = 2;
  logits[1] = -1;
  logits[1][5] = -0.F;
  logits[1][7] = 0.F;
  const auto values =
      tempered_cross_entropy(logits, torch::zeros({3}, torch::kInt64), torch::tensor(1.));
  EXPECT_TRUE(values.predictions.equal(labels_of({20, 5, 0})));
}

TEST(TemperedCrossEntropy, HasTheSameBitsOnAnyNumberOfThreads) {
  const auto logits = noise({300, 1000}, 7).to(torch::kFloat32);
  const auto labels = torch::arange(300);
  const int threads = torch::get_num_threads();
  torch::set_num_threads(1);
  const auto one = ours(logits, labels, 3, 0.1);
  torch::set_num_threads(2);
  const auto two = ours(logits, labels, 3, 0.1);
  torch::set_num_threads(threads);
  EXPECT_TRUE(one.logits.equal(two.logits));
  EXPECT_TRUE(one.temperature.equal(two.temperature));
  EXPECT_TRUE(one.values.loss.equal(two.values.loss));
  EXPECT_TRUE(one.values.entropies.equal(two.values.entropies));
}

TEST(TemperedCrossEntropy, IsFiniteForTheLargestLogits) {
  for (const double temperature : {1e-45, 1e-3, 1., 1e4, 1e300}) {
    auto logits = torch::tensor({{3e38F, -3e38F}, {-3e38F, 3e38F}}).requires_grad_();
    const auto values = tempered_cross_entropy(logits, labels_of({0, 1}),
                                               torch::tensor(temperature, torch::kFloat64));
    values.loss.backward();
    EXPECT_TRUE(std::isfinite(values.loss.item<double>())) << temperature;
    EXPECT_TRUE(torch::isfinite(values.entropies).all().item<bool>()) << temperature;
    EXPECT_TRUE(torch::isfinite(logits.grad()).all().item<bool>()) << temperature;
  }
}

TEST(TemperedCrossEntropy, IsNotFiniteAsSoonAsALogitIsNot) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad : {kInfinity, -kInfinity, std::nan(""), -std::nan("")}) {
    for (const auto type : {torch::kFloat32, torch::kFloat64}) {
      for (const int64_t place : {0, 16, 18}) {
        auto logits = torch::zeros({2, 19}, type);
        logits[1][place] = bad;
        const auto result = ours(logits, labels_of({1, 1}), 1, 0);
        EXPECT_FALSE(std::isfinite(result.values.loss.item<double>())) << bad;
        EXPECT_TRUE(torch::isnan(result.logits[1]).all().item<bool>());
        EXPECT_TRUE(torch::isfinite(result.logits[0]).all().item<bool>());
        const auto prediction = result.values.predictions[1].item<int64_t>();
        EXPECT_TRUE(prediction >= 0 && prediction < 19) << prediction;
      }
    }
  }
}

TEST(TemperedCrossEntropy, ComputesHalfPrecisionInSingle) {
  for (const auto type : {torch::kBFloat16, torch::kHalf}) {
    const auto logits = noise({4, 10}, 8).to(type);
    const auto labels = labels_of({0, 3, 9, 3});
    const auto half = ours(logits, labels, 0.5, 0);
    const auto single = ours(logits.to(torch::kFloat32), labels, 0.5, 0);
    EXPECT_EQ(half.values.loss.scalar_type(), torch::kFloat32);
    EXPECT_TRUE(half.values.loss.equal(single.values.loss));
    EXPECT_EQ(half.logits.scalar_type(), type);
    EXPECT_TRUE(half.logits.equal(single.logits.to(type)));
  }
}

TEST(TemperedCrossEntropy, TakesStridesOtherLabelsAndATemperatureOfAnyType) {
  const auto logits = noise({6, 5}, 9);
  const auto labels = labels_of({0, 1, 2, 3, 4});
  const auto plain = ours(logits.t().contiguous(), labels, 2, 0);
  const auto turned = ours(logits.t(), labels.to(torch::kInt32), 2, 0);
  EXPECT_TRUE(plain.values.loss.equal(turned.values.loss));
  EXPECT_TRUE(plain.logits.equal(turned.logits));
  const auto single = torch::tensor({2.F}).requires_grad_();
  tempered_cross_entropy(logits.t(), labels, single).loss.backward();
  expect_close(single.grad(), plain.temperature.view({1}), 1e-7);
}

TEST(TemperedCrossEntropy, IsTheSameWithReferenceOpsWhichHaveSecondDerivatives) {
  const auto logits = noise({6, 5}, 9);
  const auto labels = labels_of({0, 1, 2, 3, 4, 0});
  const ReferenceOpsScope path(true);
  for (const double smoothing : kSmoothings) {
    const auto reference = ours(logits, labels, 2, smoothing);
    const ReferenceOpsScope other(false);
    const auto fused = ours(logits, labels, 2, smoothing);
    expect_close(reference.values.loss.detach(), fused.values.loss.detach(), 1e-12);
    expect_close(reference.values.entropies, fused.values.entropies, 1e-12);
    expect_close(reference.logits, fused.logits, 1e-12);
    expect_close(reference.temperature, fused.temperature, 1e-12);
    EXPECT_TRUE(reference.values.predictions.equal(fused.values.predictions));
  }
  const auto leaf = logits.clone().requires_grad_();
  const auto loss = tempered_cross_entropy(leaf, labels, torch::tensor(2.)).loss;
  torch::autograd::grad({loss}, {leaf}, {}, /*retain_graph=*/true, /*create_graph=*/true);
}

TEST(TemperedCrossEntropy, PassesTheIncomingGradientOn) {
  const auto logits = noise({4, 5}, 10).requires_grad_();
  const auto temperature = torch::tensor(2., torch::kFloat64).requires_grad_();
  const auto labels = labels_of({0, 1, 2, 3});
  (-3 * tempered_cross_entropy(logits, labels, temperature).loss).backward();
  const auto once = ours(logits.detach(), labels, 2, 0);
  expect_close(logits.grad(), -3 * once.logits, 1e-15);
  expect_close(temperature.grad(), -3 * once.temperature, 1e-15);
}

TEST(TemperedCrossEntropy, GivesTheSameGradientAgainIfTheGraphIsKept) {
  const auto logits = noise({4, 5}, 11).requires_grad_();
  const auto labels = labels_of({0, 1, 2, 3});
  const auto loss = tempered_cross_entropy(logits, labels, torch::tensor(1.)).loss;
  loss.backward({}, /*retain_graph=*/true);
  const auto first = logits.grad().clone();
  logits.mutable_grad().fill_(7);  // not what the graph keeps
  logits.mutable_grad() = torch::Tensor();
  loss.backward();
  EXPECT_TRUE(logits.grad().equal(first));
  EXPECT_ANY_THROW(loss.backward());
}

TEST(TemperedCrossEntropy, CanBeDifferentiatedOnce) {
  const auto logits = noise({4, 5}, 11).requires_grad_();
  const auto loss = tempered_cross_entropy(logits, labels_of({0, 1, 2, 3}), torch::tensor(1.)).loss;
  EXPECT_EQ(error_of([&] {
              torch::autograd::grad({loss}, {logits}, {}, /*retain_graph=*/true,
                                    /*create_graph=*/true);
            }),
            "cross_entropy: must be differentiated once, got a request for the gradient's "
            "gradient");
}

TEST(TemperedCrossEntropy, RejectsSmoothingOutsideOfItsRange) {
  for (const double smoothing : {-0.1, 1., std::nan("")}) {
    const auto message = error_of([&] {
      tempered_cross_entropy(torch::zeros({1, 2}), labels_of({0}), torch::tensor(1.),
                             {.smoothing = smoothing});
    });
    EXPECT_TRUE(message.starts_with("cross_entropy: smoothing must be in [0, 1), is ")) << message;
  }
}

TEST(TemperedCrossEntropy, RejectsLabelsWithoutAClass) {
  EXPECT_EQ(error_of([] {
              tempered_cross_entropy(torch::zeros({2, 3}), labels_of({0, 3}), torch::tensor(1.));
            }),
            "cross_entropy: labels must be in [0, 3), got 3 for sample 1");
}

TEST(TemperedLogs, AreThoseOfTheSoftmaxAtATemperature) {
  const auto logits = 10 * noise({20, 7}, 1);
  for (const double temperature : {0.01, 1., 100.}) {
    expect_close(tempered_logs(logits, torch::tensor(temperature, torch::kFloat64)),
                 log_softmax(logits, {.temperature = temperature}), 1e-9);
  }
}

TEST(TemperedLogs, HaveTheGradientsOfCentralDifferences) {
  const auto logits = noise({3, 4}, 2);
  const auto temperature = torch::tensor(0.7, torch::kFloat64);
  expect_gradient([&](const torch::Tensor& at) { return tempered_logs(at, temperature); }, logits);
  expect_gradient([&](const torch::Tensor& at) { return tempered_logs(logits, at); }, temperature);
}

TEST(TemperedLogs, HaveFiniteGradientsAtTheLargestLogits) {
  for (const double temperature : {1e-3, 1e4}) {
    auto logits = torch::tensor({{3e38F, -3e38F}}).requires_grad_();
    auto learnt = torch::tensor(temperature).requires_grad_();
    tempered_logs(logits, learnt).exp().sum().backward();
    EXPECT_TRUE(torch::isfinite(logits.grad()).all().item<bool>()) << temperature;
    EXPECT_TRUE(torch::isfinite(learnt.grad()).all().item<bool>()) << temperature;
  }
}

TEST(TemperedLogs, DescribeALoss) {
  const auto logits = noise({4, 5}, 3);
  const auto labels = labels_of({0, 1, 2, 3});
  const auto temperature = torch::tensor(2., torch::kFloat64);
  const auto logs = tempered_logs(logits, temperature);
  const auto values = described_loss(-logs.gather(1, labels.unsqueeze(1)).squeeze(1), logs, logits);
  const auto expected = tempered_cross_entropy(logits, labels, temperature);
  expect_close(values.loss, expected.loss, 1e-14);
  expect_close(values.sample_losses, expected.sample_losses, 1e-14);
  expect_close(values.entropies, expected.entropies, 1e-14);
  EXPECT_TRUE(values.predictions.equal(expected.predictions));
}

TEST(TemperedLogs, OfHalfPrecisionAreSingle) {
  EXPECT_EQ(tempered_logs(torch::zeros({1, 2}, torch::kHalf), torch::tensor(1.)).scalar_type(),
            torch::kFloat32);
}

}  // namespace kelvin::cross_entropy_test
