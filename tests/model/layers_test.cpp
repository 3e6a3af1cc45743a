#include "kelvin/model/layers.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

TEST(SameConvolution, KeepsTheSizeOfMapsAtStrideOne) {
  for (const int64_t kernel : {1, 3, 7}) {
    auto convolution = same_convolution(2, 5, kernel);
    EXPECT_EQ(convolution(torch::zeros({1, 2, 8, 9})).sizes(), (torch::IntArrayRef{1, 5, 8, 9}));
    EXPECT_FALSE(convolution->bias.defined());
  }
  EXPECT_EQ(same_convolution(2, 5, 3, 2)(torch::zeros({1, 2, 8, 9})).sizes(),
            (torch::IntArrayRef{1, 5, 4, 5}));
  EXPECT_TRUE(same_convolution(2, 5, 3, 1, /*has_bias=*/true)->bias.defined());
}

TEST(TapOf, RemembersTheGeometryOfAConvolution) {
  const auto convolution = same_convolution(2, 5, 7, 2);
  const auto tap = tap_of("a", convolution, torch::zeros({1}), torch::ones({1}), torch::ones({2}));
  EXPECT_EQ(tap.stride, 2);
  EXPECT_EQ(tap.padding, 3);
  EXPECT_TRUE(tap.weight.is_same(convolution->weight));
  EXPECT_FALSE(tap.bias.defined());
  EXPECT_EQ(tap.product.size(0), 1);
  EXPECT_EQ(tap.output.size(0), 2);
}

TEST(TapOf, RemembersABias) {
  const torch::nn::Linear linear(3, 4);
  const auto tap = tap_of("a", linear, torch::zeros({1}), torch::ones({1}), torch::ones({1}));
  EXPECT_TRUE(tap.bias.is_same(linear->bias));
}

TEST(LargeImages, AreThoseOfImageNet) {
  EXPECT_FALSE(is_large({.height = 64, .width = 64}));
  EXPECT_TRUE(is_large({.height = 224, .width = 224}));
  EXPECT_FALSE(is_large({.height = 224, .width = 32}));
}

TEST(ForImagenet, FollowsTheImageSizeUnlessItIsSet) {
  Settings unset("model", {});
  EXPECT_TRUE(read_is_for_imagenet(unset, "stem", {.height = 224, .width = 224}));
  EXPECT_FALSE(read_is_for_imagenet(unset, "stem", {}));
  Settings set("model", {{"stem", "imagenet"}});
  EXPECT_TRUE(read_is_for_imagenet(set, "stem", {}));
}

TEST(CheckDropout, TakesSharesBelowOne) {
  const Settings settings("model", {});
  check_dropout(settings, 0);
  check_dropout(settings, 0.5);
  EXPECT_EQ(error_of([&] { check_dropout(settings, 1); }),
            "model.dropout: must be in [0, 1), got 1");
  EXPECT_EQ(error_of([&] { check_dropout(settings, -0.1); }),
            "model.dropout: must be in [0, 1), got -0.1");
}

}  // namespace
}  // namespace kelvin
