#include "kelvin/math/adam_regression.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

Minibatch minibatch(uint64_t seed, int64_t samples = 32) {
  return {.features = noise({samples, 6}, seed).to(torch::kFloat32),
          .labels = torch::arange(samples) % 3};
}

TEST(AdamRegression, TakesTheStepsOfLibTorch) {
  AdamRegression regression({.classes = 3, .rate = 0.01, .seed = 5});
  regression.train(minibatch(0));
  // A reference that goes on from there would lack Adam's averages: begin with the same weights.
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(5);
  const double bound = 1 / std::sqrt(6.);
  auto weight = torch::empty({3, 6}).uniform_(-bound, bound, generator).requires_grad_();
  auto bias = torch::empty({3}).uniform_(-bound, bound, generator).requires_grad_();
  torch::optim::Adam adam({weight, bias}, torch::optim::AdamOptions(0.01));
  for (uint64_t step = 0; step < 40; ++step) {
    const auto batch = minibatch(step);
    adam.zero_grad();
    torch::cross_entropy_loss(torch::addmm(bias, batch.features, weight.t()), batch.labels)
        .backward();
    adam.step();
    if (step > 0) regression.train(batch);
  }
  const auto found = regression.classifier();
  expect_close(found.weight, weight.detach(), 1e-5);
  expect_close(found.bias, bias.detach(), 1e-5);
  EXPECT_EQ(found.iterations, 40);
}

TEST(AdamRegression, BeginsFromItsSeed) {
  const auto after_one = [](uint64_t seed) {
    AdamRegression regression({.classes = 3, .seed = seed});
    regression.train(minibatch(0));
    return regression.classifier().weight;
  };
  EXPECT_TRUE(torch::equal(after_one(1), after_one(1)));
  EXPECT_FALSE(torch::equal(after_one(1), after_one(2)));
}

TEST(AdamRegression, RejectsWhatItCannotTrain) {
  EXPECT_EQ(error_of([] { AdamRegression({.classes = 1}); }),
            "AdamRegression: needs at least 2 classes, got 1");
  AdamRegression regression({.classes = 3});
  EXPECT_EQ(error_of([&] { regression.classifier(); }), "AdamRegression: nothing was shown");
  auto batch = minibatch(0);
  batch.features[1][2] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(error_of([&] { regression.train(batch); }), "features must be finite");
}

}  // namespace
}  // namespace kelvin
