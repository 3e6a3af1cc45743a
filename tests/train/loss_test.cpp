#include "kelvin/train/loss.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/gradients.h"
#include "tests/support/losses.h"
#include "tests/support/tensors.h"

namespace kelvin::loss_test {

class EveryLoss : public testing::TestWithParam<std::string> {};

TEST_P(EveryLoss, HasASummaryOfOneLineAndAReference) {
  const auto& entry = losses().find(GetParam());
  EXPECT_FALSE(entry.summary.empty());
  EXPECT_EQ(entry.summary.find('\n'), std::string::npos);
  EXPECT_FALSE(entry.reference.empty());
}

INSTANTIATE_TEST_SUITE_P(Losses, EveryLoss, testing::ValuesIn(losses().names()),
                         [](const auto& info) { return info.param; });

// What is fed logits and labels.
class ClassifierLoss : public testing::TestWithParam<std::string> {
 protected:
  Loss loss_ = made_loss(GetParam());
};

std::vector<std::string> classifier_losses() {
  auto names = losses().names();
  std::erase_if(names, [](const auto& name) { return !made_loss(name).classifies(); });
  return names;
}

bool is_finite(const torch::Tensor& tensor) { return torch::isfinite(tensor).all().item<bool>(); }

TEST_P(ClassifierLoss, HasTheGradientsOfCentralDifferences) {
  const auto logits = 2 * noise({3, 4}, 1);
  const auto labels = labels_of({1, 3, 0});
  for (const double value : {0.5, 1., 3.}) {
    const auto temperature = torch::tensor(value, torch::kFloat64);
    expect_gradient(
        [&](const torch::Tensor& at) { return 10 * value * loss_(at, labels, temperature).loss; },
        logits);
    expect_gradient(
        [&](const torch::Tensor& at) { return 10 * value * loss_(logits, labels, at).loss; },
        temperature);
  }
}

TEST_P(ClassifierLoss, TellsOfEverySample) {
  const auto logits = noise({6, 5}, 2).requires_grad_();
  const auto labels = labels_of({0, 1, 2, 3, 4, 0});
  const auto temperature = torch::tensor(0.5, torch::kFloat64);
  const auto all = loss_(logits, labels, temperature);
  EXPECT_TRUE(all.loss.requires_grad());
  EXPECT_FALSE(all.sample_losses.requires_grad());
  EXPECT_FALSE(all.entropies.requires_grad());
  EXPECT_NEAR(all.loss.item<double>(), all.sample_losses.mean().item<double>(), 1e-14);
  EXPECT_TRUE(all.predictions.equal(logits.argmax(1)));
  for (int64_t i = 0; i < 6; ++i) {
    const auto one = loss_(logits.detach().narrow(0, i, 1), labels.narrow(0, i, 1), temperature);
    EXPECT_NEAR(one.loss.item<double>(), all.sample_losses[i].item<double>(), 1e-14);
    EXPECT_NEAR(one.entropies.item<double>(), all.entropies[i].item<double>(), 1e-14);
  }
}

TEST_P(ClassifierLoss, IsFiniteAtExtremeTemperaturesAndLogits) {
  const auto labels = labels_of({0, 1, 2, 3});
  for (const double value : {1e-3, 1e-2, 1., 1e2, 1e4}) {
    for (const double scale : {0., 1e-6, 1e-3, 1., 1e3, 1e6, 1e30}) {
      SCOPED_TRACE(testing::Message() << "T = " << value << ", logits of " << scale);
      // Some labels get all the probability and some none.
      const auto logits =
          (scale * (noise({4, 6}, 3) + 3 * torch::eye(4, 6))).to(torch::kFloat32).requires_grad_();
      const auto temperature = torch::tensor(value).requires_grad_();
      const auto values = loss_(logits, labels, temperature);
      values.loss.backward();
      EXPECT_TRUE(is_finite(values.loss));
      EXPECT_TRUE(is_finite(values.sample_losses));
      EXPECT_TRUE(is_finite(values.entropies));
      EXPECT_TRUE(is_finite(logits.grad()));
      EXPECT_TRUE(is_finite(temperature.grad()));
    }
  }
}

TEST_P(ClassifierLoss, OfASingleClassIsNothing) {
  const auto logits = torch::tensor({{2.F}, {-1.F}}).requires_grad_();
  const auto values = loss_(logits, labels_of({0, 0}), torch::tensor(2.));
  values.loss.backward();
  EXPECT_EQ(values.loss.item<double>(), 0);
  expect_close(logits.grad(), torch::zeros({2, 1}), 0);
}

TEST_P(ClassifierLoss, TakesHalfPrecision) {
  const auto logits = noise({4, 5}, 4).to(torch::kHalf).requires_grad_();
  const auto values = loss_(logits, labels_of({0, 1, 2, 3}), torch::tensor(1.));
  values.loss.backward();
  EXPECT_EQ(values.loss.scalar_type(), torch::kFloat32);
  EXPECT_EQ(logits.grad().scalar_type(), torch::kHalf);
  EXPECT_GT(logits.grad().abs().max().item<double>(), 0);
}

TEST_P(ClassifierLoss, IsNotFiniteForALogitThatIsNoNumber) {
  auto logits = torch::zeros({2, 3});
  logits[1][2] = std::nan("");
  const auto values = loss_(logits, labels_of({0, 1}), torch::tensor(1.));
  EXPECT_FALSE(is_finite(values.loss));
}

TEST_P(ClassifierLoss, RejectsWhatDoesNotFitUnderItsOwnName) {
  EXPECT_EQ(
      error_of([&] {
        loss_(torch::zeros({3, 4}), labels_of({0, 0}), torch::tensor(1.));
      }),
      GetParam() + ": needs logits [samples, classes] and labels [samples], got [3, 4] and [2]");
  EXPECT_EQ(error_of([&] {
              loss_(torch::zeros({1, 4}), labels_of({4}), torch::tensor(1.));
            }),
            GetParam() + ": labels must be in [0, 4), got 4 for sample 0");
  EXPECT_EQ(error_of([&] {
              loss_(torch::zeros({1, 4}), labels_of({0}), torch::tensor(0.));
            }),
            GetParam() + ": temperature must be a finite number above 0, got 0");
}

INSTANTIATE_TEST_SUITE_P(Losses, ClassifierLoss, testing::ValuesIn(classifier_losses()),
                         [](const auto& info) { return info.param; });

TEST(Losses, AreFoundByName) {
  const auto names = losses().names();
  for (const auto* name : {"cross_entropy", "focal", "info_nce", "logit_norm", "mse"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
  EXPECT_TRUE(error_of([] {
                losses().find("focall");
              }).starts_with("no loss named 'focall'; did you mean 'focal'?"));
}

TEST(Loss, OfOneViewIsToldTheLabels) {
  const auto labels = labels_of({3, 1, 3});
  EXPECT_TRUE(made_loss("mse").classifies());
  EXPECT_EQ(made_loss("mse").outputs, 0);
  EXPECT_TRUE(made_loss("mse").targets(labels).equal(labels));
}

TEST(Loss, OfTwoViewsIsToldWhichRowsShowTheSameImage) {
  const auto loss = made_loss("info_nce");
  EXPECT_TRUE(loss.targets(labels_of({3, 1, 3, 3, 1, 3})).equal(labels_of({0, 1, 2, 0, 1, 2})));
  EXPECT_EQ(error_of([&] {
              loss.targets(labels_of({3, 1, 3}));
            }),
            "loss: a batch must have 2 rows of each image, has 3 rows");
}

TEST(Loss, IsNoneUntilThereIsAFunction) {
  EXPECT_FALSE(Loss());
  EXPECT_TRUE(made_loss("focal"));
}

}  // namespace kelvin::loss_test
