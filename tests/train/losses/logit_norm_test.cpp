#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "tests/support/losses.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::logit_norm_test {

TEST(LogitNormLoss, AgreesWithPythonsTorch) {
  const auto logits = 3 * noise({20, 7}, 1);
  const auto labels = torch::arange(20) % 7;
  const auto expected = oracle(R"(
import torch
z, y = torch.tensor(x["logits"], requires_grad=True), torch.tensor(x["labels"])
fed = z / (torch.norm(z, p=2, dim=-1, keepdim=True) + 1e-7) / 0.04
loss = torch.nn.functional.cross_entropy(fed, y)
loss.backward()
out["loss"] = loss.detach().numpy()
out["entropies"] = torch.distributions.Categorical(logits=fed).entropy().detach().numpy()
out["gradient"] = z.grad.numpy()
)",
                               {{"logits", logits}, {"labels", labels}});
  const auto leaf = logits.clone().requires_grad_();
  const auto values = made_loss("logit_norm")(leaf, labels, torch::tensor(0.04, torch::kFloat64));
  values.loss.backward();
  expect_close(values.loss.detach(), expected.at("loss"), 1e-12);
  expect_close(values.entropies, expected.at("entropies"), 1e-12);
  expect_close(leaf.grad(), expected.at("gradient"), 1e-12);
}

TEST(LogitNormLoss, DoesNotSeeTheNorm) {
  const auto logits = noise({5, 4}, 2);
  const auto labels = labels_of({0, 1, 2, 3, 0});
  const auto temperature = torch::tensor(0.1, torch::kFloat64);
  const auto loss = made_loss("logit_norm");
  expect_close(loss(1e6 * logits, labels, temperature).sample_losses,
               loss(1e3 * logits, labels, temperature).sample_losses, 1e-8);
}

TEST(LogitNormLoss, OfNoLogitsIsTheLogarithmOfTheClasses) {
  const auto logits = torch::zeros({2, 6}).requires_grad_();
  const auto values = made_loss("logit_norm")(logits, labels_of({0, 1}), torch::tensor(0.04));
  values.loss.backward();
  EXPECT_NEAR(values.loss.item<double>(), std::log(6), 1e-6);
  EXPECT_TRUE(torch::isfinite(logits.grad()).all().item<bool>());
}

TEST(LogitNormLoss, PredictsByTheLogitsThemselves) {
  // Divided by their norm the two are the same number in single precision.
  const auto logits = torch::tensor({{16777215.F, 16777216.F}});
  const auto values = made_loss("logit_norm")(logits, labels_of({0}), torch::tensor(1.));
  EXPECT_EQ(values.predictions.item<int64_t>(), 1);
}

}  // namespace kelvin::logit_norm_test
