#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/losses.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::cross_entropy_test {

TEST(CrossEntropyLoss, AgreesWithPythonsTorch) {
  const auto logits = 3 * noise({20, 7}, 1);
  const auto labels = torch::arange(20) % 7;
  const auto expected = oracle(R"(
import torch
z, y = torch.tensor(x["logits"]), torch.tensor(x["labels"])
for s in (0, 0.3):
    out[f"loss_{s}"] = torch.nn.functional.cross_entropy(z / 1.5, y, label_smoothing=s).numpy()
)",
                               {{"logits", logits}, {"labels", labels}});
  const auto temperature = torch::tensor(1.5, torch::kFloat64);
  expect_close(made_loss("cross_entropy")(logits, labels, temperature).loss, expected.at("loss_0"),
               1e-13);
  expect_close(
      made_loss("cross_entropy", {{"loss_smoothing", 0.3}})(logits, labels, temperature).loss,
      expected.at("loss_0.3"), 1e-13);
}

TEST(CrossEntropyLoss, RejectsSmoothingOutsideOfItsRange) {
  EXPECT_EQ(error_of([] {
              made_loss("cross_entropy", {{"loss_smoothing", 1.0}});
            }),
            "train.loss_smoothing: must be in [0, 1), got 1");
  EXPECT_EQ(error_of([] {
              made_loss("cross_entropy", {{"loss_smoothing", -0.5}});
            }),
            "train.loss_smoothing: must be in [0, 1), got -0.5");
}

TEST(CrossEntropyLoss, RejectsSettingsOfOtherLosses) {
  const auto message = error_of([] { made_loss("cross_entropy", {{"loss_gamma", 1.0}}); });
  EXPECT_NE(message.find("loss_gamma"), std::string::npos) << message;
}

}  // namespace kelvin::cross_entropy_test
