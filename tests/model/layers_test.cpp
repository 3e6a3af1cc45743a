#include "kelvin/model/layers.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "kelvin/model/precision.h"
#include "kelvin/ops/reference_ops.h"
#include "tests/support/built_model.h"
#include "tests/support/errors.h"
#include "tests/support/threads.h"

namespace kelvin::layers_test {

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

// Of the weights of a 1x1 convolution with stride 2, times 128 maps of 16 x 16.
torch::Tensor strided_gradient(int64_t inputs, int64_t outputs, const torch::Tensor& maps,
                               const torch::Tensor& gradient) {
  const auto convolution = same_convolution(inputs, outputs, 1, 2);
  product_of(convolution, maps).backward(gradient);
  return convolution->weight.grad();
}

// LibTorch 1.13 itself writes beyond its memory here, on 3 threads at once, on 4 to 7 soon.
TEST(ProductOf, AStridedConvolutionHasTheRightGradientOnAnyNumberOfThreads) {
  torch::manual_seed(0);
  for (const int threads : {1, 2, 3, 5, 6, 7}) {
    const ThreadCount count(threads);
    for (const int64_t inputs : {1, 3, 8, 16}) {
      SCOPED_TRACE(testing::Message() << inputs << " channels, " << threads << " threads");
      const auto maps =
          torch::randn({128, inputs, 16, 16}).contiguous(torch::MemoryFormat::ChannelsLast);
      const auto gradient =
          torch::randn({128, 2 * inputs, 8, 8}).contiguous(torch::MemoryFormat::ChannelsLast);
      const auto expected = torch::einsum(
          "nohw,nihw->oi", {gradient.to(torch::kFloat64),
                            maps.to(torch::kFloat64).slice(2, 0, 16, 2).slice(3, 0, 16, 2)});
      for (int i = 0; i < 5; ++i) {
        const auto found = strided_gradient(inputs, 2 * inputs, maps, gradient);
        EXPECT_TRUE(found.squeeze()
                        .view_as(expected)
                        .to(torch::kFloat64)
                        .allclose(expected, /*rtol=*/1e-4, /*atol=*/1e-3));
      }
    }
  }
}

TEST(LayerRecord, RemembersTheGeometryOfAConvolution) {
  const auto convolution = same_convolution(2, 5, 7, 2);
  const auto layer =
      layer_record("a", convolution, torch::zeros({1}), torch::ones({1}), torch::ones({2}));
  EXPECT_EQ(layer.stride, 2);
  EXPECT_EQ(layer.padding, 3);
  EXPECT_TRUE(layer.weight.is_same(convolution->weight));
  EXPECT_FALSE(layer.bias.defined());
  EXPECT_EQ(layer.pre_activation.size(0), 1);
  EXPECT_EQ(layer.output.size(0), 2);
}

TEST(LayerRecord, RemembersABias) {
  const torch::nn::Linear linear(3, 4);
  const auto layer =
      layer_record("a", linear, torch::zeros({1}), torch::ones({1}), torch::ones({1}));
  EXPECT_TRUE(layer.bias.is_same(linear->bias));
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
  const auto run = [&](bool is_reference, bool adds, torch::nn::BatchNorm2d& norm) {
    const ReferenceOpsScope path(is_reference);
    return normed_relu(norm, maps, adds ? added : torch::Tensor()).detach();
  };
  for (const bool adds : {false, true}) {
    torch::nn::BatchNorm2d reference_norm(16);
    torch::nn::BatchNorm2d fast_norm(16);
    EXPECT_TRUE(run(true, adds, reference_norm).allclose(run(false, adds, fast_norm), 1e-5, 1e-6));
    EXPECT_TRUE(reference_norm->running_mean.allclose(fast_norm->running_mean, 1e-5, 1e-7));
    EXPECT_TRUE(reference_norm->running_var.allclose(fast_norm->running_var, 1e-5, 1e-7));
    EXPECT_EQ(fast_norm->num_batches_tracked.item<int64_t>(), 1);
    fast_norm->eval();
    reference_norm->eval();
    EXPECT_TRUE(run(true, adds, reference_norm).allclose(run(false, adds, fast_norm), 1e-5, 1e-6));
    EXPECT_EQ(fast_norm->num_batches_tracked.item<int64_t>(), 1);
  }
}

TEST(ResidualSum, HasTheSameBitsOnBothPaths) {
  torch::manual_seed(0);
  const auto residual = torch::randn({3, 5});
  const auto added = torch::randn({3, 5}).to(torch::kBFloat16);
  for (const auto& [left, right] : {std::pair(residual, added), std::pair(added, residual)}) {
    const ReferenceOpsScope path(true);
    const auto reference = residual_sum(left, right);
    EXPECT_EQ(reference.scalar_type(), torch::kFloat32);
    const ReferenceOpsScope other(false);
    EXPECT_TRUE(reference.equal(residual_sum(left, right)));
  }
}

TEST(GeluOf, IsLibTorchsWhereNothingIsTrained) {
  const auto product = torch::linspace(-8, 8, 1000);
  {
    torch::NoGradGuard no_grad;
    EXPECT_TRUE(gelu_of(product).equal(torch::gelu(product)));
  }
  EXPECT_TRUE(gelu_of(product).allclose(torch::gelu(product), 0, 1e-6));
}

bool is_convolutional(const std::string& name) {
  return name.starts_with("resnet") || name.starts_with("vgg") || name == "truncated";
}
bool has_dropout(const std::string& name) { return name.starts_with("vgg"); }

// Without dropout, which double precision would draw otherwise.  Blocks of a transformer are all
// alike: three of them stand for twelve.
std::shared_ptr<Model> trainable(const std::string& name, torch::ScalarType type,
                                 Values values = {}) {
  if (has_dropout(name)) values["dropout"] = 0.0;
  if (name.starts_with("vit")) values["depth"] = 3;
  auto model = built_model(name, values, {.classes = 10}, 3);
  model->to(type);
  model->train();
  for (auto& parameter : model->parameters()) {
    if (parameter.dim() != 4) continue;
    parameter.set_data(parameter.contiguous(torch::MemoryFormat::ChannelsLast));
  }
  return model;
}

torch::Tensor loss_of(Model& model, const torch::Tensor& images,
                      Precision precision = Precision::fp32) {
  torch::Tensor logits;
  {
    const PrecisionScope scope(precision, torch::kCPU);
    logits = model.forward(images.contiguous(torch::MemoryFormat::ChannelsLast));
  }
  if (precision == Precision::bf16) logits = logits.to(torch::kFloat32);
  const auto labels = torch::arange(images.size(0), torch::kInt64) % 10;
  return torch::nll_loss(torch::log_softmax(logits, 1), labels);
}

// The gradients of all parameters in one training step.
torch::Tensor gradients_of(const std::string& name, torch::ScalarType type, bool is_reference,
                           Precision precision = Precision::fp32) {
  const auto model = trainable(name, type);
  torch::manual_seed(4);
  const auto images = torch::rand({8, 3, 32, 32}).to(type);
  const ReferenceOpsScope path(is_reference);
  loss_of(*model, images, precision).backward();
  std::vector<torch::Tensor> all;
  for (const auto& parameter : model->parameters()) {
    all.push_back(parameter.grad().contiguous().flatten().to(torch::kFloat64));
  }
  return torch::cat(all);
}

class ModelPaths : public testing::TestWithParam<std::string> {};

// Rounding is all that differs.  In deep networks that were just drawn it is much: where it turns
// a relu on or off, gradients jump, by up to 3 % of their norm on either path.  Winograd's
// transforms by themselves cost one or two digits.
TEST_P(ModelPaths, AgreeButForRounding) {
  const auto& name = GetParam();
  const auto reference = gradients_of(name, torch::kFloat32, true);
  const auto fast = gradients_of(name, torch::kFloat32, false);
  const auto exact = gradients_of(name, torch::kFloat64, true);
  const auto scale = exact.norm().item<double>();
  const auto reference_error = (reference - exact).norm().item<double>();
  const auto fast_error = (fast - exact).norm().item<double>();
  ASSERT_TRUE(std::isfinite(scale));
  // For those who ask for a report (--gtest_output=json).
  RecordProperty("reference_error", std::to_string(reference_error / scale));
  RecordProperty("fast_over_reference", std::to_string(fast_error / reference_error));
  EXPECT_LT(reference_error, 0.1 * scale);
  EXPECT_LT(fast_error, 300 * reference_error + 1e-5 * scale);
  EXPECT_LT(fast_error, 30 * reference_error + (is_convolutional(name) ? 1e-2 : 1e-5) * scale);
  EXPECT_LT(fast_error, 0.1 * scale);
}

TEST_P(ModelPaths, AreAsFarFromDoublePrecisionInBfloat16) {
  if (!multiplies_bfloat16(torch::kCPU)) GTEST_SKIP() << "no products of bfloat16";
  const auto& name = GetParam();
  const auto exact = gradients_of(name, torch::kFloat64, true);
  const auto reference = gradients_of(name, torch::kFloat32, true, Precision::bf16);
  const auto fast = gradients_of(name, torch::kFloat32, false, Precision::bf16);
  const auto reference_error = (reference - exact).norm().item<double>();
  const auto fast_error = (fast - exact).norm().item<double>();
  const auto scale = exact.norm().item<double>();
  RecordProperty("reference_error", std::to_string(reference_error / scale));
  RecordProperty("fast_over_reference", std::to_string(fast_error / reference_error));
  EXPECT_LT(fast_error, 1.5 * reference_error + 0.02 * scale);
  // Where deep networks were just drawn, either path may be off by as much as the gradient itself.
  const auto cosine = [&](const torch::Tensor& gradients) {
    return torch::cosine_similarity(gradients, exact, 0).item<double>();
  };
  EXPECT_GT(cosine(fast), cosine(reference) - 0.1);
  EXPECT_NEAR(std::log2(fast.norm().item<double>() / reference.norm().item<double>()), 0, 0.5);
}

// One of each way to be built; larger ones have more of the same layers.
const std::set<std::string> kSmallest = {"mlp",   "resnet10", "resnet20",
                                         "vgg11", "vgg11_bn", "vit_tiny"};

std::vector<std::string> larger_models() {
  auto names = built_models();
  std::erase_if(names, [](const auto& name) { return kSmallest.contains(name); });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Smallest, ModelPaths, testing::ValuesIn(kSmallest),
                         [](const auto& param_info) { return param_info.param; });
INSTANTIATE_TEST_SUITE_P(LargerSlow, ModelPaths, testing::ValuesIn(larger_models()),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace kelvin::layers_test
