#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support/losses.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::mse_test {

TEST(MseLoss, AgreesWithPythonsTorch) {
  const auto logits = 3 * noise({20, 7}, 1);
  const auto labels = torch::arange(20) % 7;
  const auto expected = oracle(R"(
import torch
z, y = torch.tensor(x["logits"], requires_grad=True), torch.tensor(x["labels"])
p = torch.softmax(z / 1.5, 1)
loss = torch.nn.functional.mse_loss(p, torch.nn.functional.one_hot(y, 7).double())
loss.backward()
out["loss"] = loss.detach().numpy()
out["entropies"] = torch.distributions.Categorical(p).entropy().detach().numpy()
out["gradient"] = z.grad.numpy()
)",
                               {{"logits", logits}, {"labels", labels}});
  const auto leaf = logits.clone().requires_grad_();
  const auto values = made_loss("mse")(leaf, labels, torch::tensor(1.5, torch::kFloat64));
  values.loss.backward();
  expect_close(values.loss.detach(), expected.at("loss"), 1e-14);
  expect_close(values.entropies, expected.at("entropies"), 1e-12);
  expect_close(leaf.grad(), expected.at("gradient"), 1e-14);
}

TEST(MseLoss, OfEqualLogitsHasAClosedForm) {
  // One class misses 1 - 1/C, the others have 1/C too much.
  for (const int64_t classes : {2, 10, 100}) {
    const auto values = made_loss("mse")(torch::zeros({3, classes}, torch::kFloat64),
                                         labels_of({0, 1, 1}), torch::tensor(3.));
    const auto share = 1 / static_cast<double>(classes);
    EXPECT_NEAR(values.loss.item<double>(), share * (1 - share), 1e-15);
  }
}

}  // namespace kelvin::mse_test
