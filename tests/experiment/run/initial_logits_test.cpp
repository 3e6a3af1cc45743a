#include "kelvin/experiment/run/initial_logits.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "kelvin/model/head.h"
#include "kelvin/model/initialisation.h"
#include "tests/support/built_model.h"
#include "tests/support/errors.h"

namespace kelvin::initial_logits_test {

class InitialLogitsOfGlyphs : public testing::Test {
 protected:
  const Dataset dataset_ = load_dataset("glyphs10", {.train_samples = 300, .test_samples = 10});
};

// For independent entries of mean 0, ||M||^2 has the mean sigma^2 n ||A||^2; the bound of the paper
// is larger by sqrt(m), the width.
TEST_F(InitialLogitsOfGlyphs, AreAsExpectedOfTheLastLayersWeights) {
  const auto model = built_model("mlp", {{"width", 256}, {"depth", 3}, {"bias", false}});
  initialise(*model, {.scheme = InitScheme::he});
  const auto logits = initial_logits(*model, dataset_, 200);
  EXPECT_EQ(logits.samples, 200);
  EXPECT_NEAR(logits.deviation, std::sqrt(2.0 / 256), 0.01);
  EXPECT_NEAR(logits.norm / *logits.expected, 1, 0.5);  // ten rows of one draw
  EXPECT_NEAR(*logits.bound / *logits.expected, 16, 1e-9);
  EXPECT_LE(logits.norm, *logits.bound);
}

TEST_F(InitialLogitsOfGlyphs, ApproachTheExpectationOverManyDraws) {
  double squares = 0;
  double expected = 0;
  const auto model = built_model("mlp", {{"width", 256}, {"depth", 2}, {"bias", false}});
  for (int draw = 0; draw < 40; ++draw) {
    initialise(*model, {.scheme = InitScheme::he});
    const auto logits = initial_logits(*model, dataset_, 100);
    squares += logits.norm * logits.norm;
    expected += *logits.expected * *logits.expected;
  }
  EXPECT_NEAR(squares / expected, 1, 0.2);
}

TEST_F(InitialLogitsOfGlyphs, DoNotNeedBatchStatisticsWithoutBatchNormalisation) {
  const auto model = built_model("vgg11", {{"width", 0.25}});
  const auto logits = initial_logits(*model, dataset_, 100);
  EXPECT_EQ(logits.norm, logits.norm_running);
  const auto normed = initial_logits(*built_model("vgg11_bn", {{"width", 0.25}}), dataset_, 100);
  EXPECT_GT(std::abs(normed.norm / normed.norm_running - 1), 0.1);
}

TEST_F(InitialLogitsOfGlyphs, AreTheSameWhenMeasuredAgain) {
  const auto model = built_model("resnet10", {{"width", 0.125}});
  const auto first = initial_logits(*model, dataset_, 100);
  const auto second = initial_logits(*model, dataset_, 100);
  EXPECT_EQ(first.norm, second.norm);
  EXPECT_EQ(first.norm_running, second.norm_running);
}

TEST_F(InitialLogitsOfGlyphs, CountTheBiasIntoThePrediction) {
  torch::NoGradGuard no_grad;
  const auto model = built_model("mlp", {{"width", 64}, {"depth", 3}});
  model->head()->linear()->weight.mul_(1e-6);
  model->head()->linear()->bias.fill_(2);
  const auto logits = initial_logits(*model, dataset_, 100);
  EXPECT_NEAR(logits.norm, 2 * std::sqrt(10.0), 1e-3);
  EXPECT_NEAR(logits.expected.value(), logits.norm, 1e-3);
  EXPECT_GE(logits.bound.value(), logits.norm * (1 - 1e-6));
}

TEST_F(InitialLogitsOfGlyphs, ThatAreNormalisedHaveNoPrediction) {
  const auto model = built_model("mlp", {{"width", 8}, {"norm_after_logits", "layer"}});
  EXPECT_FALSE(initial_logits(*model, dataset_, 50).bound.has_value());
}

TEST_F(InitialLogitsOfGlyphs, OfPretrainedNetworksUseTheirRunningStatistics) {
  const auto model = built_model("resnet10", {{"width", 0.125}});
  const auto logits = initial_logits(*model, dataset_, 50, /*is_pretrained=*/true);
  EXPECT_EQ(logits.norm, logits.norm_running);
  scale_to_norm(*model, dataset_, 3, /*is_pretrained=*/true);
  EXPECT_NEAR(initial_logits(*model, dataset_, 1024).norm_running, 3, 1e-3);
}

// Sorted by class, as folders of images are.
TEST_F(InitialLogitsOfGlyphs, DoNotDependOnTheOrderOfTheImages) {
  auto sorted = dataset_;
  const auto order = std::get<1>(torch::sort(dataset_.train.labels));
  sorted.train.pixels = dataset_.train.pixels.index_select(0, order);
  sorted.train.labels = dataset_.train.labels.index_select(0, order);
  sorted.upsample_to = 128;  // batches of 16
  auto mixed = dataset_;
  mixed.upsample_to = 128;
  const auto model = built_model("resnet10", {{"width", 0.125}});
  const auto ratio =
      initial_logits(*model, sorted, 300).norm / initial_logits(*model, mixed, 300).norm;
  EXPECT_NEAR(ratio, 1, 0.05);
}

TEST_F(InitialLogitsOfGlyphs, CannotBeScaledBeyondTheirType) {
  const auto model = built_model("mlp", {{"width", 8}, {"depth", 2}});
  const auto message = error_of([&] { scale_to_norm(*model, dataset_, 1e39); });
  EXPECT_TRUE(
      message.starts_with("init.target_logits_norm: must be within what float32 can hold, "
                          "got 1e+39, which gives "))
      << message;
}

class EveryScaledModel : public testing::TestWithParam<std::string> {};

// Narrow members of every family.
TEST_P(EveryScaledModel, HitsItsTarget) {
  const auto dataset = load_dataset("glyphs10", {.train_samples = 32, .test_samples = 10});
  const auto hits = [&](const char* norm, double target) {
    const auto& name = GetParam();
    const bool is_for_cifar = name == "resnet20" || name == "resnet32" || name == "resnet44" ||
                              name == "resnet56" || name == "truncated";
    const auto width = name == "mlp" ? Value(32) : Value(is_for_cifar ? 0.5 : 0.125);
    const auto model = built_model(name, {{"norm_after_logits", norm}, {"width", width}});
    scale_to_norm(*model, dataset, target);
    EXPECT_NEAR(initial_logits(*model, dataset, 32).norm / target, 1, 1e-4)
        << norm << " " << target;
  };
  for (const double target : {1e-6, 1000.0}) hits("none", target);
  hits("layer", 0.3);
  hits("batch", 30);
}

INSTANTIATE_TEST_SUITE_P(Models, EveryScaledModel, testing::ValuesIn(built_models()),
                         [](const auto& info) { return info.param; });

TEST_F(InitialLogitsOfGlyphs, ThatAreZeroCannotBeScaled) {
  torch::NoGradGuard no_grad;
  const auto model = built_model("mlp", {{"width", 4}, {"bias", false}});
  model->head()->linear()->weight.zero_();
  EXPECT_EQ(error_of([&] { scale_to_norm(*model, dataset_, 1); }),
            "init.target_logits_norm: the norm of the logits must be finite and above 0 to be "
            "scaled, is 0");
}

TEST(AffordableSamples, AreFewerOfCostlyModels) {
  EXPECT_EQ(affordable_samples(*built_model("mlp", {{"width", 4}}), {}), 1024);
  const auto costly = built_model("vgg19", {}, {.height = 224, .width = 224});
  EXPECT_EQ(affordable_samples(*costly, {.height = 224, .width = 224}), 32);
}

}  // namespace kelvin::initial_logits_test
