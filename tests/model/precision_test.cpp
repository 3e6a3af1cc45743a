#include "kelvin/model/precision.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>
#include <string>
#include <vector>

#include "kelvin/model/layers.h"
#include "kelvin/model/model.h"
#include "kelvin/ops/reference_ops.h"
#include "tests/support/errors.h"

namespace kelvin::precision_test {

constexpr bool kEmulated = false;
constexpr bool kNative = true;

TEST(Precision, IsKnownByName) {
  EXPECT_EQ(precision_of("bf16"), Precision::bf16);
  EXPECT_STREQ(name_of(Precision::fp32), "fp32");
  EXPECT_EQ(error_of([] { precision_of("fp8"); }),
            "train.precision: must be fp32 or bf16, got 'fp8'");
}

// Every float that is a bfloat16 or lies between two of them in a telling way, and the special
// ones.
TEST(InPrecision, IsLibTorchsBfloat16) {
  const PrecisionScope scope(Precision::bf16, kEmulated);
  torch::manual_seed(0);
  const auto infinity = std::numeric_limits<float>::infinity();
  const auto values = torch::cat({torch::randn({1000}) * torch::logspace(-38, 38, 1000),
                                  torch::tensor({0.0F, -0.0F, 1.0F, 1.00390625F, 1.01171875F,
                                                 infinity, -infinity, 3.4e38F, 1e-40F, -1e-45F})});
  EXPECT_TRUE(in_precision(values).equal(values.to(torch::kBFloat16).to(torch::kFloat32)));
  const auto nan = torch::full({1}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(in_precision(nan).isnan().all().item<bool>());
}

TEST(InPrecision, RoundsGradientsToo) {
  const PrecisionScope scope(Precision::bf16, kEmulated);
  auto leaf = torch::randn({5}, torch::requires_grad());
  const auto upstream = torch::randn({5});
  (in_precision(leaf) * upstream).sum().backward();
  EXPECT_TRUE(leaf.grad().equal(upstream.to(torch::kBFloat16).to(torch::kFloat32)));
}

TEST(InPrecision, KeepsTheOrderInMemory) {
  const PrecisionScope scope(Precision::bf16, kEmulated);
  const auto maps = torch::randn({2, 3, 4, 5}).contiguous(torch::MemoryFormat::ChannelsLast);
  const auto rounded = in_precision(maps);
  EXPECT_EQ(rounded.strides(), maps.strides());
  const auto part = maps.slice(3, 1, 4, 2);
  EXPECT_TRUE(in_precision(part).equal(part.to(torch::kBFloat16).to(torch::kFloat32)));
}

TEST(InPrecision, IsTheTensorItselfOutsideOfAScope) {
  const auto tensor = torch::randn({3});
  {
    const PrecisionScope outer(Precision::bf16, kEmulated);
    const PrecisionScope inner(Precision::fp32, kEmulated);
    EXPECT_TRUE(in_precision(tensor).is_same(tensor));
  }
  EXPECT_TRUE(in_precision(tensor).is_same(tensor));
  EXPECT_FALSE(rounds_products());
}

// Sums of few products of bfloat16 are exact in float32: both ways must give the same bfloat16.
TEST(PrecisionScope, MayStandWithinAnother) {
  torch::nn::Linear linear(3, 2);
  const auto input = torch::randn({4, 3});
  const auto type = [&] { return product_of(linear, input).scalar_type(); };
  const PrecisionScope outer(Precision::bf16, kNative);
  {
    const PrecisionScope inner(Precision::fp32, kNative);
    EXPECT_EQ(type(), torch::kFloat32);
  }
  EXPECT_EQ(type(), torch::kBFloat16);
  { const PrecisionScope inner(Precision::bf16, kNative); }
  EXPECT_EQ(type(), torch::kBFloat16);
}

TEST(ProductOf, IsWhatLibTorchGivesInBfloat16) {
  torch::manual_seed(1);
  torch::nn::Linear linear(2, 4);
  const auto input = torch::randn({6, 2});
  torch::Tensor emulated;
  {
    const PrecisionScope scope(Precision::bf16, kEmulated);
    emulated = product_of(linear, input);
  }
  const auto weight = linear->weight.to(torch::kBFloat16).to(torch::kFloat64);
  const auto bias = linear->bias.to(torch::kBFloat16).to(torch::kFloat64);
  const auto exact = torch::linear(input.to(torch::kBFloat16).to(torch::kFloat64), weight, bias);
  const auto expected = exact.to(torch::kFloat32).to(torch::kBFloat16).to(torch::kFloat32);
  // The sum of three numbers is rounded once or twice in float32.
  EXPECT_TRUE(torch::allclose(emulated, expected, 1.0 / 128, 1e-6));
  EXPECT_GT((emulated == expected).sum().item<int64_t>(), emulated.numel() - 2);
}

class EveryModelInBfloat16 : public testing::TestWithParam<std::string> {
 protected:
  static std::shared_ptr<Model> model() {
    torch::manual_seed(2);
    Values values;
    if (GetParam().starts_with("resnet")) values["width"] = GetParam() == "resnet10" ? 0.25 : 0.5;
    if (GetParam().starts_with("vgg")) values["width"] = 0.0625;
    if (GetParam() == "mlp") values = {{"width", 32}, {"depth", 3}};
    if (GetParam() == "vit_tiny") values = {{"width", 0.125}, {"depth", 2}};
    Settings settings("model", values);
    return models().find(GetParam()).build({}, settings);
  }

  struct Pass {
    torch::Tensor logits;
    torch::Tensor gradient;  // all of them, one behind the other
  };

  static Pass pass(Precision precision, bool is_native, bool is_reference = false) {
    const ReferenceOpsScope path(is_reference);
    const auto network = model();
    torch::manual_seed(3);
    const auto images = torch::randn({4, 3, 32, 32});
    torch::Tensor logits;
    {
      const PrecisionScope scope(precision, is_native);
      logits = network->forward(images).to(torch::kFloat32);
    }
    logits.square().mean().backward();
    std::vector<torch::Tensor> gradients;
    for (const auto& parameter : network->parameters()) {
      EXPECT_EQ(parameter.scalar_type(), torch::kFloat32);
      gradients.push_back(parameter.grad().flatten());
    }
    return {logits.detach(), torch::cat(gradients)};
  }

  static double relative(const torch::Tensor& left, const torch::Tensor& right) {
    return ((left - right).norm() / right.norm()).item<double>();
  }
};

TEST_P(EveryModelInBfloat16, IsAsCloseToFloat32AsLibTorchsAutocast) {
  const auto exact = pass(Precision::fp32, kNative);
  const auto emulated = pass(Precision::bf16, kEmulated);
  const auto native = pass(Precision::bf16, kNative, /*is_reference=*/true);
  EXPECT_GT(relative(emulated.logits, exact.logits), 1e-5);  // it did round
  EXPECT_LT(relative(emulated.logits, exact.logits), 0.1);
  // Which way a sum is rounded differs, how far it is off does not: gradients of ReLU networks
  // differ most, where a unit near 0 is on in one and off in the other.
  for (const auto part : {&Pass::logits, &Pass::gradient}) {
    const double ours = relative(emulated.*part, exact.*part);
    const double theirs = relative(native.*part, exact.*part);
    EXPECT_LT(ours, 2 * theirs);
    EXPECT_LT(theirs, 5 * ours);
  }
}

// Our own kernels round where LibTorch's do, weights not even once they are multiplied.
TEST_P(EveryModelInBfloat16, IsAsCloseToFloat32WithItsOwnKernels) {
  const auto exact = pass(Precision::fp32, kNative);
  const auto reference = pass(Precision::bf16, kNative, /*is_reference=*/true);
  const auto fast = pass(Precision::bf16, kNative);
  for (const auto part : {&Pass::logits, &Pass::gradient}) {
    EXPECT_LT(relative(fast.*part, exact.*part), 2 * relative(reference.*part, exact.*part));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EveryModelInBfloat16,
                         testing::Values("mlp", "resnet10", "resnet20", "vgg11_bn", "vit_tiny"),
                         [](const auto& tested) { return tested.param; });

}  // namespace kelvin::precision_test
