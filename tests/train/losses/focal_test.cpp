#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/losses.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::focal_test {

TEST(FocalLoss, AgreesWithPythonsTorch) {
  const auto logits = 3 * noise({20, 7}, 1);
  const auto labels = torch::arange(20) % 7;
  const auto expected = oracle(R"(
import torch
for gamma in (0.5, 2, 5):
    z, y = torch.tensor(x["logits"], requires_grad=True), torch.tensor(x["labels"])
    logs = torch.log_softmax(z / 1.5, 1)
    own = logs.gather(1, y.unsqueeze(1)).squeeze(1)
    loss = (-(1 - own.exp()) ** gamma * own).mean()
    loss.backward()
    out[f"loss_{gamma}"] = loss.detach().numpy()
    out[f"gradient_{gamma}"] = z.grad.numpy()
)",
                               {{"logits", logits}, {"labels", labels}});
  for (const auto& [name, gamma] :
       std::map<std::string, double>{{"0.5", 0.5}, {"2", 2}, {"5", 5}}) {
    const auto leaf = logits.clone().requires_grad_();
    const auto values = made_loss("focal", {{"loss_gamma", gamma}})(
        leaf, labels, torch::tensor(1.5, torch::kFloat64));
    values.loss.backward();
    expect_close(values.loss.detach(), expected.at("loss_" + name), 1e-12);
    expect_close(leaf.grad(), expected.at("gradient_" + name), 1e-12);
  }
}

TEST(FocalLoss, HasAGammaOfTwoUnlessToldOtherwise) {
  const auto logits = noise({5, 4}, 2);
  const auto labels = labels_of({0, 1, 2, 3, 0});
  const auto temperature = torch::tensor(1., torch::kFloat64);
  EXPECT_TRUE(
      made_loss("focal")(logits, labels, temperature)
          .loss.equal(made_loss("focal", {{"loss_gamma", 2}})(logits, labels, temperature).loss));
}

TEST(FocalLoss, WithoutGammaIsTheCrossEntropy) {
  const auto labels = torch::arange(20) % 7;
  const auto focal = made_loss("focal", {{"loss_gamma", 0.0}});
  for (const double temperature : {0.01, 1., 100.}) {
    const auto ours = noise({20, 7}, 3).requires_grad_();
    const auto theirs = ours.detach().clone().requires_grad_();
    const auto learnt = torch::tensor(temperature, torch::kFloat64);
    const auto actual = focal(ours, labels, learnt);
    const auto expected = made_loss("cross_entropy")(theirs, labels, learnt);
    actual.loss.backward();
    expected.loss.backward();
    expect_close(actual.sample_losses, expected.sample_losses, 1e-10);
    expect_close(actual.entropies, expected.entropies, 1e-12);
    expect_close(ours.grad(), theirs.grad(), 1e-12);
  }
}

TEST(FocalLoss, HasFiniteGradientsAtCertainty) {
  for (const double gamma : {0., 0.5, 1., 2., 5.}) {
    const auto focal = made_loss("focal", {{"loss_gamma", gamma}});
    for (const float margin : {10.F, 20.F, 100.F, 1e6F, 1e38F}) {
      const auto right = torch::tensor({{margin, 0.F, 0.F}}).requires_grad_();
      const auto wrong = torch::tensor({{0.F, margin, 0.F}}).requires_grad_();
      const auto temperature = torch::tensor(1.).requires_grad_();
      focal(right, labels_of({0}), temperature).loss.backward();
      focal(wrong, labels_of({0}), temperature).loss.backward();
      EXPECT_TRUE(torch::isfinite(right.grad()).all().item<bool>()) << gamma << ", " << margin;
      EXPECT_TRUE(torch::isfinite(temperature.grad()).all().item<bool>()) << gamma << margin;
      EXPECT_NEAR(right.grad().abs().max().item<double>(), 0, 1e-3);
      if (margin > 1e30F) continue;  // there the logarithms end
      // Where nothing speaks for the label the factor is 1.
      EXPECT_NEAR(wrong.grad()[0][0].item<double>(), -1, 1e-2) << gamma << ", " << margin;
    }
  }
}

TEST(FocalLoss, RejectsAGammaBelowZero) {
  EXPECT_EQ(error_of([] {
              made_loss("focal", {{"loss_gamma", -1.0}});
            }),
            "train.loss_gamma: must be a finite number of at least 0, got -1");
}

}  // namespace kelvin::focal_test
