#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/gradients.h"
#include "tests/support/losses.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::info_nce_test {

torch::Tensor temperature_of(double value) { return torch::tensor(value, torch::kFloat64); }

// All images first, then all of them once more.
torch::Tensor pairs(int64_t images) { return torch::arange(images).repeat({2}); }

Loss products() { return made_loss("info_nce", {{"loss_normalise", false}}); }

TEST(InfoNceLoss, WantsTwoViewsAndAnEmbeddingOfItsOwnWidth) {
  const auto usual = made_loss("info_nce");
  EXPECT_EQ(usual.views, 2);
  EXPECT_EQ(usual.outputs, 128);
  EXPECT_FALSE(usual.classifies());
  EXPECT_EQ(made_loss("info_nce", {{"loss_dimensions", 16}}).outputs, 16);
}

TEST(InfoNceLoss, AgreesWithPythonsTorch) {
  const auto embeddings = 3 * noise({14, 5}, 1);
  for (const bool normalises : {true, false}) {
    const auto expected =
        oracle(R"(
import torch
z = torch.tensor(x["embeddings"], requires_grad=True)
n = len(z) // 2
u = torch.nn.functional.normalize(z, dim=1) if x["normalises"] else z
logits = (u @ u.T / 0.3).masked_fill(torch.eye(2 * n, dtype=torch.bool), -1e300)
positive = (torch.arange(2 * n) + n) % (2 * n)
loss = torch.nn.functional.cross_entropy(logits, positive, reduction="none")
loss.mean().backward()
out["losses"] = loss.detach().numpy()
out["entropies"] = torch.distributions.Categorical(logits=logits).entropy().detach().numpy()
out["predictions"] = (logits.argmax(1) % n).numpy()
out["gradient"] = z.grad.numpy()
)",
               {{"embeddings", embeddings}, {"normalises", torch::tensor(normalises ? 1. : 0.)}});
    const auto leaf = embeddings.clone().requires_grad_();
    const auto loss = made_loss("info_nce", {{"loss_normalise", normalises}});
    const auto values = loss(leaf, pairs(7), temperature_of(0.3));
    values.loss.backward();
    expect_close(values.loss.detach(), expected.at("losses").mean(), 1e-12);
    expect_close(values.sample_losses, expected.at("losses"), 1e-12);
    expect_close(values.entropies, expected.at("entropies"), 1e-12);
    expect_close(values.predictions, expected.at("predictions"), 0);
    expect_close(leaf.grad(), expected.at("gradient"), 1e-12);
  }
}

TEST(InfoNceLoss, HasTheGradientsOfCentralDifferences) {
  const auto embeddings = noise({6, 4}, 2);
  for (const double value : {0.5, 1., 5.}) {
    for (const auto& loss : {made_loss("info_nce"), products()}) {
      expect_gradient(
          [&](const torch::Tensor& at) {
            return 10 * value * loss(at, pairs(3), temperature_of(value)).loss;
          },
          embeddings);
      expect_gradient(
          [&](const torch::Tensor& at) { return 10 * value * loss(embeddings, pairs(3), at).loss; },
          temperature_of(value));
    }
  }
}

TEST(InfoNceLoss, OfEqualEmbeddingsIsTheLogarithmOfTheCandidates) {
  for (const int64_t images : {2, 3, 64}) {
    for (const double temperature : {0.01, 1., 100.}) {
      const auto embeddings = torch::full({2 * images, 3}, 0.7, torch::kFloat64);
      const auto values =
          made_loss("info_nce")(embeddings, pairs(images), temperature_of(temperature));
      const double expected = std::log(static_cast<double>(2 * images - 1));
      EXPECT_NEAR(values.loss.item<double>(), expected, 1e-12);
      EXPECT_NEAR(values.entropies.mean().item<double>(), expected, 1e-12);
    }
  }
}

// The positive has cosine 1, the two views of the other image cosine 0.
TEST(InfoNceLoss, OfTwoOrthogonalPairsIsKnown) {
  const auto embeddings = torch::tensor({{3., 0.}, {0., 0.5}, {2., 0.}, {0., 9.}}, torch::kFloat64);
  for (const double temperature : {0.05, 0.5, 1., 5.}) {
    const auto values = made_loss("info_nce")(embeddings, pairs(2), temperature_of(temperature));
    const double expected = std::log1p(2 * std::exp(-1 / temperature));
    const double p = std::exp(-expected);
    for (int64_t view = 0; view < 4; ++view) {
      EXPECT_NEAR(values.sample_losses[view].item<double>(), expected, 1e-12);
      EXPECT_NEAR(values.entropies[view].item<double>(), expected + (1 - p) / temperature, 1e-12);
    }
    EXPECT_TRUE(values.predictions.equal(pairs(2)));
  }
}

// At a high T the softmax is as good as uniform, and so the loss cannot go far below its logarithm.
TEST(InfoNceLoss, IsBoundedFromBelowByTheCosinesThatThereAre) {
  const auto embeddings = noise({20, 4}, 3);
  for (const double temperature : {0.1, 1., 10.}) {
    const auto loss = made_loss("info_nce")(embeddings, pairs(10), temperature_of(temperature));
    EXPECT_GT(loss.loss.item<double>(), std::log1p(18 * std::exp(-2 / temperature)));
    EXPECT_LT(loss.loss.item<double>(), std::log1p(18 * std::exp(2 / temperature)));
  }
}

TEST(InfoNceLoss, IgnoresTheOrderOfImagesAndOfTheirViews) {
  const auto embeddings = noise({10, 3}, 4);
  const auto temperature = temperature_of(0.2);
  const auto loss = made_loss("info_nce");
  const auto expected = loss(embeddings, pairs(5), temperature);
  const auto swapped = loss(embeddings.roll({5}, {0}), pairs(5), temperature);
  expect_close(swapped.loss, expected.loss, 1e-13);
  const auto order = torch::tensor({7, 2, 0, 9, 4, 5, 1, 8, 3, 6});
  const auto mixed =
      loss(embeddings.index_select(0, order), pairs(5).index_select(0, order), temperature);
  expect_close(mixed.loss, expected.loss, 1e-13);
  expect_close(mixed.sample_losses, expected.sample_losses.index_select(0, order), 1e-13);
  expect_close(mixed.entropies, expected.entropies.index_select(0, order), 1e-13);
  EXPECT_TRUE(mixed.predictions.equal(expected.predictions.index_select(0, order)));
  const auto renamed = loss(embeddings, 100 - 7 * pairs(5), temperature);
  expect_close(renamed.loss, expected.loss, 0);
}

TEST(InfoNceLoss, SeesTheNormOnlyWithoutNormalisation) {
  const auto embeddings = noise({8, 3}, 5);
  const auto lengths = torch::linspace(0.1, 50, 8, torch::kFloat64).unsqueeze(1);
  const auto temperature = temperature_of(0.5);
  const auto loss = made_loss("info_nce");
  expect_close(loss(lengths * embeddings, pairs(4), temperature).sample_losses,
               loss(embeddings, pairs(4), temperature).sample_losses, 1e-12);
  // Twice the length is a quarter of the temperature.
  expect_close(products()(2 * embeddings, pairs(4), temperature).loss,
               products()(embeddings, pairs(4), temperature_of(0.125)).loss, 1e-12);
}

TEST(InfoNceLoss, PredictsTheImageOfTheNearestCandidate) {
  // The second view of image 0 lies with image 1.
  const auto embeddings =
      torch::tensor({{1., 0.}, {0., 1.}, {0.1, 1.}, {0.01, 1.}}, torch::kFloat64);
  const auto values = made_loss("info_nce")(embeddings, pairs(2), temperature_of(1));
  EXPECT_TRUE(values.predictions.equal(labels_of({0, 1, 1, 1}))) << values.predictions;
}

TEST(InfoNceLoss, OfOneImageIsNothing) {
  const auto embeddings = noise({2, 4}, 6).requires_grad_();
  const auto values = made_loss("info_nce")(embeddings, pairs(1), temperature_of(0.1));
  values.loss.backward();
  EXPECT_EQ(values.loss.item<double>(), 0);
  EXPECT_EQ(values.entropies.abs().max().item<double>(), 0);
  expect_close(embeddings.grad(), torch::zeros({2, 4}), 0);
}

TEST(InfoNceLoss, TakesEmbeddingsWithoutADirection) {
  for (const auto& loss : {made_loss("info_nce"), products()}) {
    const auto nothing = torch::zeros({6, 4}).requires_grad_();
    const auto values = loss(nothing, pairs(3), torch::tensor(0.1));
    values.loss.backward();
    EXPECT_NEAR(values.loss.item<double>(), std::log(5), 1e-6);
    expect_close(nothing.grad(), torch::zeros({6, 4}), 0);
    auto one = noise({6, 4}, 7);
    one[2].zero_();
    one.requires_grad_();
    loss(one, pairs(3), temperature_of(0.1)).loss.backward();
    EXPECT_TRUE(torch::isfinite(one.grad()).all().item<bool>());
    EXPECT_GT(one.grad()[2].abs().max().item<double>(), 0);
  }
}

TEST(InfoNceLoss, IsFiniteAtExtremeTemperaturesAndLengths) {
  for (const auto& loss : {made_loss("info_nce"), products()}) {
    for (const double value : {1e-3, 1e-2, 1., 1e2, 1e4}) {
      for (const double scale : {1e-6, 1e-3, 1., 1e3, 1e6, 1e18}) {
        SCOPED_TRACE(testing::Message() << "T = " << value << ", embeddings of " << scale);
        const auto embeddings = (scale * noise({8, 6}, 8)).to(torch::kFloat32).requires_grad_();
        const auto temperature = torch::tensor(value).requires_grad_();
        const auto values = loss(embeddings, pairs(4), temperature);
        values.loss.backward();
        EXPECT_TRUE(torch::isfinite(values.loss).item<bool>());
        EXPECT_TRUE(torch::isfinite(values.entropies).all().item<bool>());
        EXPECT_TRUE(torch::isfinite(embeddings.grad()).all().item<bool>());
        EXPECT_TRUE(torch::isfinite(temperature.grad()).all().item<bool>());
      }
    }
  }
}

// Two views a millionth apart beside one that is ten millionths off: their cosines are the same
// number in single precision.
TEST(InfoNceLoss, TellsCosinesApartThatSinglePrecisionCannot) {
  const auto angles = torch::tensor({0., 1e-5, 1e-6, 1.1e-5}, torch::kFloat64);
  const auto embeddings = torch::stack({angles.cos(), angles.sin()}, 1).to(torch::kFloat32);
  const auto values = made_loss("info_nce")(embeddings, pairs(2), torch::tensor(1e-12));
  EXPECT_TRUE(values.predictions.equal(pairs(2)));
  EXPECT_LT(values.loss.item<double>(), 1e-6);
}

TEST(InfoNceLoss, TakesHalfPrecision) {
  const auto embeddings = noise({4, 5}, 9).to(torch::kHalf).requires_grad_();
  const auto values = made_loss("info_nce")(embeddings, pairs(2), torch::tensor(1.));
  values.loss.backward();
  EXPECT_EQ(values.loss.scalar_type(), torch::kFloat32);
  EXPECT_EQ(embeddings.grad().scalar_type(), torch::kHalf);
  EXPECT_GT(embeddings.grad().abs().max().item<double>(), 0);
}

TEST(InfoNceLoss, IsNotFiniteForAnEmbeddingThatIsNoNumber) {
  auto embeddings = noise({4, 3}, 10);
  embeddings[1][2] = std::nan("");
  const auto values = made_loss("info_nce")(embeddings, pairs(2), temperature_of(1));
  EXPECT_FALSE(torch::isfinite(values.loss).item<bool>());
}

std::string refusal(const torch::Tensor& embeddings, const torch::Tensor& images,
                    const torch::Tensor& temperature = torch::tensor(1.)) {
  return error_of([&] { made_loss("info_nce")(embeddings, images, temperature); });
}

TEST(InfoNceLoss, RejectsWhatDoesNotFit) {
  EXPECT_EQ(refusal(torch::zeros({3, 4}), labels_of({0, 0})),
            "info_nce: needs embeddings [views, dimensions] and images [views], got [3, 4] and "
            "[2]");
  EXPECT_EQ(refusal(torch::zeros({0, 4}), torch::zeros({0}, torch::kInt64)),
            "info_nce: needs at least one image and one dimension, got [0, 4]");
  EXPECT_EQ(refusal(torch::zeros({2, 4}, torch::kInt64), labels_of({0, 0})),
            "info_nce: embeddings must be floating-point numbers, are Long");
  EXPECT_EQ(refusal(torch::zeros({2, 4}), torch::zeros({2})),
            "info_nce: images must be whole numbers, are Float");
  EXPECT_EQ(refusal(torch::zeros({2, 4}), labels_of({0, 0}), torch::zeros({2})),
            "info_nce: the temperature must be one floating-point number, is Float [2]");
  EXPECT_EQ(refusal(torch::zeros({2, 4}), labels_of({0, 0}), torch::tensor(0.)),
            "info_nce: temperature must be a finite number above 0, got 0");
  EXPECT_EQ(refusal(torch::zeros({4, 4}), labels_of({0, 0, 5, 0})),
            "info_nce: each image must have 2 views, image 0 has 3");
  EXPECT_EQ(refusal(torch::zeros({3, 4}), labels_of({0, 7, 0})),
            "info_nce: each image must have 2 views, image 7 has 1");
}

TEST(InfoNceLoss, RejectsAnEmbeddingOfOneDimension) {
  EXPECT_EQ(error_of([] {
              made_loss("info_nce", {{"loss_dimensions", 1}});
            }),
            "train.loss_dimensions: must be from 2 to 65536, got 1");
}

}  // namespace kelvin::info_nce_test
