#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>

#include "tests/support/built_model.h"
#include "tests/support/errors.h"

namespace kelvin::vgg_test {

Taps taps_of(Model& model, int64_t side = 32) {
  torch::NoGradGuard no_grad;
  Taps taps;
  model.forward(torch::randn({1, 3, side, side}), &taps);
  return taps;
}

TEST(Vgg, HasAsManyWeightLayersAsItsNameSays) {
  for (const std::string norm : {"", "_bn"}) {
    for (const size_t depth : {11, 16, 19}) {
      const auto model = built_model("vgg" + std::to_string(depth) + norm, {{"width", 0.0625}});
      EXPECT_EQ(taps_of(*model).layers().size(), depth);
    }
  }
}

// The sum over its layers, written out.
TEST(Vgg, HasTheParametersOfVgg19ForSmallImages) {
  const int64_t convolutions = 20'024'384;
  const int64_t linear = 2 * (512 * 512 + 512) + 512 * 10 + 10;
  EXPECT_EQ(parameter_count(*built_model("vgg19")), convolutions + linear);
  const int64_t channels = 2 * 64 + 2 * 128 + 4 * 256 + 8 * 512;
  EXPECT_EQ(parameter_count(*built_model("vgg19_bn")), convolutions + linear + 2 * channels);
}

TEST(Vgg, TakesAHeadOfAnySize) {
  const auto small =
      built_model("vgg11", {{"width", 0.125}, {"head", "cifar"}}, {.height = 224, .width = 224});
  EXPECT_EQ(taps_of(*small, 224).layers()[8].input.sizes(), (torch::IntArrayRef{1, 64}));
  const auto large = built_model("vgg11", {{"width", 0.125}, {"head", "imagenet"}});
  EXPECT_EQ(taps_of(*large).layers()[8].input.sizes(), (torch::IntArrayRef{1, 64 * 49}));
}

TEST(Vgg, StartsWithNarrowNormalsInItsLinearLayersAndWithoutBias) {
  const auto model = built_model("vgg11");
  for (const auto& item : model->named_parameters()) {
    if (item.key() == "classifier.3.weight") {
      EXPECT_NEAR(item.value().std().item<double>(), 0.01, 1e-4);
    }
    if (item.key() == "features.8.weight") {
      EXPECT_NEAR(item.value().std().item<double>(), std::sqrt(2.0 / (256 * 9)), 1e-3);
    }
    if (item.key().ends_with("bias")) {
      EXPECT_EQ(item.value().abs().max().item<double>(), 0) << item.key();
    }
  }
}

TEST(Vgg, DropsUnitsOnlyInTraining) {
  const auto model = built_model("vgg11", {{"width", 0.0625}});
  const auto images = torch::randn({4, 3, 32, 32});
  EXPECT_TRUE(model->forward(images).equal(model->forward(images)));
  model->train();
  EXPECT_FALSE(model->forward(images).equal(model->forward(images)));
  const auto without = built_model("vgg11", {{"width", 0.0625}, {"dropout", 0}});
  without->train();
  EXPECT_TRUE(without->forward(images).equal(without->forward(images)));
}

TEST(Vgg, RejectsSettingsOutOfRange) {
  EXPECT_EQ(error_of([] {
              built_model("vgg11", {{"width", 0.01}});
            }),
            "model.width: must be in [0.015625, 16], got 0.01");
  EXPECT_EQ(error_of([] {
              built_model("vgg11", {{"head", "tiny"}});
            }),
            "model.head: must be imagenet or cifar, got 'tiny'");
  EXPECT_EQ(error_of([] {
              built_model("vgg11", {{"dropout", 1}});
            }),
            "model.dropout: must be in [0, 1), got 1");
  EXPECT_EQ(error_of([] { built_model("vgg11", {}, {.height = 28, .width = 28}); }),
            "model.name: VGG halves its maps five times, so images must be at least 32 x 32, are "
            "28 x 28");
}

}  // namespace kelvin::vgg_test
