#include "kelvin/model/layers.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <vector>

#include "kelvin/math/plain_path.h"
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

// Both paths: a normalisation in training, what it makes of maps, and its state afterwards.
TEST(NormedRelu, IsTheSameOnBothPaths) {
  torch::manual_seed(0);
  const auto maps = torch::randn({4, 16, 8, 8}).contiguous(torch::MemoryFormat::ChannelsLast);
  const auto added = torch::randn_like(maps);
  const auto run = [&](bool plain, bool adds, torch::nn::BatchNorm2d& norm) {
    const PlainScope path(plain);
    return normed_relu(norm, maps, adds ? added : torch::Tensor()).detach();
  };
  for (const bool adds : {false, true}) {
    torch::nn::BatchNorm2d plain_norm(16);
    torch::nn::BatchNorm2d fast_norm(16);
    EXPECT_TRUE(run(true, adds, plain_norm).allclose(run(false, adds, fast_norm), 1e-5, 1e-6));
    EXPECT_TRUE(plain_norm->running_mean.allclose(fast_norm->running_mean, 1e-5, 1e-7));
    EXPECT_TRUE(plain_norm->running_var.allclose(fast_norm->running_var, 1e-5, 1e-7));
    EXPECT_EQ(fast_norm->num_batches_tracked.item<int64_t>(), 1);
    fast_norm->eval();
    plain_norm->eval();
    EXPECT_TRUE(run(true, adds, plain_norm).allclose(run(false, adds, fast_norm), 1e-5, 1e-6));
    EXPECT_EQ(fast_norm->num_batches_tracked.item<int64_t>(), 1);
  }
}

// What a training step sees of a network: logits, and the gradients of all parameters.
torch::Tensor step_of(const std::string& name, torch::ScalarType type, bool is_plain) {
  torch::manual_seed(3);
  Settings settings("model", {});
  const auto model = models().find(name).build({.classes = 10}, settings);
  model->to(type);
  model->train();
  for (auto& parameter : model->parameters()) {
    if (parameter.dim() != 4) continue;
    parameter.set_data(parameter.contiguous(torch::MemoryFormat::ChannelsLast));
  }
  torch::manual_seed(4);  // of dropout; drawn alike in both types below
  const auto images = torch::rand({6, 3, 32, 32}).to(type);
  const PlainScope path(is_plain);
  const auto logits = model->forward(images.contiguous(torch::MemoryFormat::ChannelsLast));
  const auto labels = torch::arange(6, torch::kInt64);
  torch::nll_loss(torch::log_softmax(logits, 1), labels).backward();
  std::vector<torch::Tensor> all = {logits.detach().flatten().to(torch::kFloat64)};
  for (const auto& parameter : model->parameters()) {
    all.push_back(parameter.grad().contiguous().flatten().to(torch::kFloat64));
  }
  return torch::cat(all);
}

bool has_dropout(const std::string& name) { return name.starts_with("vgg"); }

class ModelPaths : public testing::TestWithParam<std::string> {};

// Rounding is all that differs: what the fast path is off from double precision is at most some
// times what the plain path is off.
TEST_P(ModelPaths, AgreeButForRounding) {
  const auto& name = GetParam();
  const auto plain = step_of(name, torch::kFloat32, true);
  const auto fast = step_of(name, torch::kFloat32, false);
  const auto scale = plain.norm().item<double>();
  ASSERT_TRUE(std::isfinite(scale));
  if (has_dropout(name)) {  // which double precision draws otherwise
    EXPECT_LT((fast - plain).norm().item<double>(), 1e-3 * scale);
    return;
  }
  const auto exact = step_of(name, torch::kFloat64, true);
  const auto plain_error = (plain - exact).norm().item<double>();
  const auto fast_error = (fast - exact).norm().item<double>();
  EXPECT_LT(plain_error, 1e-3 * scale);
  EXPECT_LT(fast_error, 30 * plain_error);
}

INSTANTIATE_TEST_SUITE_P(Registered, ModelPaths, testing::ValuesIn(models().names()),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace kelvin
