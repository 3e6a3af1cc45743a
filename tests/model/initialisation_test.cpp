#include "kelvin/model/initialisation.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "kelvin/model/head.h"
#include "tests/support/built_model.h"
#include "tests/support/errors.h"

namespace kelvin::initialisation_test {

std::shared_ptr<Model> initialised(const std::string& name, const Values& values,
                                   const InitOptions& options) {
  auto model = built_model(name, values);
  initialise(*model, options);
  return model;
}

torch::Tensor parameter(const Model& model, const std::string& name) {
  return model.named_parameters()[name];
}

double std_dev(const Model& model, const std::string& name) {
  return parameter(model, name).std().item<double>();
}

const Values kWide = {{"width", 512}, {"depth", 3}};

TEST(Initialise, LeavesTheUsualWeightsAsTheyAre) {
  const auto usual = built_model("mlp", kWide);
  const auto model = initialised("mlp", kWide, {});
  for (const auto& item : usual->named_parameters()) {
    EXPECT_TRUE(item.value().equal(parameter(*model, item.key()))) << item.key();
  }
}

TEST(Initialise, DrawsByFanIn) {
  const auto model = initialised("mlp", kWide, {.scheme = InitScheme::he});
  EXPECT_NEAR(std_dev(*model, "layers.0.weight"), std::sqrt(2.0 / 3072), 1e-4);
  EXPECT_NEAR(std_dev(*model, "layers.1.weight"), std::sqrt(2.0 / 512), 3e-4);
  EXPECT_EQ(parameter(*model, "layers.1.bias").abs().max().item<double>(), 0);
}

TEST(Initialise, DrawsByBothFans) {
  const auto model = initialised("mlp", kWide, {.scheme = InitScheme::xavier});
  EXPECT_NEAR(std_dev(*model, "layers.0.weight"), std::sqrt(2.0 / (3072 + 512)), 1e-4);
}

TEST(Initialise, DrawsAtAFixedStandardDeviationWhateverTheWidth) {
  for (const int64_t width : {128, 512}) {
    const auto model = initialised("mlp", {{"width", width}, {"depth", 3}},
                                   {.scheme = InitScheme::fixed, .std_dev = 0.3});
    EXPECT_NEAR(std_dev(*model, "layers.1.weight"), 0.3, 0.01);
  }
}

TEST(Initialise, CountsTheKernelOfAConvolutionIntoItsFan) {
  const auto model = initialised("resnet18", {{"width", 0.5}}, {.scheme = InitScheme::he});
  EXPECT_NEAR(std_dev(*model, "layer3.1.conv2.weight"), std::sqrt(2.0 / (128 * 9)), 3e-4);
  // Normalisations are no weight layers.
  EXPECT_EQ(parameter(*model, "bn1.weight").min().item<double>(), 1);
}

TEST(Initialise, ScalesAllLayers) {
  const auto usual = built_model("resnet18", {{"width", 0.125}});
  const auto model = initialised("resnet18", {{"width", 0.125}}, {.scale = 0.5});
  for (const auto& item : usual->named_parameters()) {
    const bool is_norm = item.value().dim() == 1 && !item.key().starts_with("fc");
    EXPECT_TRUE(parameter(*model, item.key()).equal(item.value() * (is_norm ? 1 : 0.5)))
        << item.key();
  }
}

TEST(Initialise, ScalesTheLogitsByTheLastScale) {
  torch::NoGradGuard no_grad;
  const auto usual = built_model("vgg11", {{"width", 0.125}});
  const auto model = initialised("vgg11", {{"width", 0.125}}, {.last_scale = 1e-3});
  const auto images = torch::randn({3, 3, 32, 32});
  EXPECT_TRUE(torch::allclose(model->forward(images), usual->forward(images) * 1e-3, 1e-4, 1e-12));
}

TEST(Initialise, ScalesNormalisedLogitsToo) {
  torch::NoGradGuard no_grad;
  const Values values = {{"width", 8}, {"depth", 2}, {"norm_after_logits", "layer"}};
  const auto usual = built_model("mlp", values);
  const auto model = initialised("mlp", values, {.last_scale = 100});
  const auto images = torch::randn({3, 3, 32, 32});
  EXPECT_TRUE(torch::allclose(model->forward(images), usual->forward(images) * 100, 1e-4, 1e-6));
}

TEST(Initialise, DrawsTheLastLayerFromANarrowInterval) {
  for (const double limit : {1e-12, 1e-3}) {
    const auto model = initialised("mlp", kWide, {.last_uniform = limit});
    const auto& last = model->head()->linear();
    EXPECT_LE(last->weight.abs().max().item<double>(), limit * (1 + 1e-6));
    EXPECT_GT(last->weight.abs().max().item<double>(), limit / 2);
    EXPECT_EQ(last->bias.abs().max().item<double>(), 0);
    EXPECT_NEAR(last->weight.std().item<double>(), limit / std::sqrt(3.0), 0.03 * limit);
    EXPECT_GT(std_dev(*model, "layers.0.weight"), 1e-3);
  }
}

TEST(Initialise, RejectsOtherSchemes) {
  EXPECT_EQ(init_scheme_of("default"), InitScheme::usual);
  EXPECT_EQ(init_scheme_of("fixed"), InitScheme::fixed);
  EXPECT_EQ(error_of([] { init_scheme_of("lecun"); }),
            "init.scheme: must be default, he, xavier or fixed, got 'lecun'");
}

}  // namespace kelvin::initialisation_test
