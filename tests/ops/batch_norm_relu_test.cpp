#include "kelvin/ops/batch_norm_relu.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <vector>

#include "tests/support/errors.h"

namespace kelvin::batch_norm_relu_test {

struct Setting {
  torch::Tensor maps;
  torch::Tensor added;  // undefined: nothing is
  torch::Tensor weight;
  torch::Tensor bias;
  torch::Tensor running_mean;
  torch::Tensor running_variance;
  torch::Tensor seen;  // the gradient of the result
};

Setting setting_of(const std::vector<int64_t>& shape, bool is_added, double mean = 0.5) {
  torch::manual_seed(0);
  const auto channels = shape.at(1);
  const auto maps = [&](double scale, double shift) {
    return (torch::randn(shape) * scale + shift).contiguous(torch::MemoryFormat::ChannelsLast);
  };
  return {.maps = maps(2, mean),
          .added = is_added ? maps(1, 0) : torch::Tensor(),
          .weight = torch::rand({channels}) + 0.5,
          .bias = torch::randn({channels}),
          .running_mean = torch::randn({channels}),
          .running_variance = torch::rand({channels}),
          .seen = maps(1, 0)};
}

// The result and everything that changed.
std::vector<torch::Tensor> outcomes(const Setting& setting, torch::ScalarType type, bool is_fused) {
  const auto own = [&](const torch::Tensor& tensor) {
    return tensor.defined() ? tensor.to(type).clone() : tensor;
  };
  // Weights of bfloat16 maps stay float32.
  const auto parameter = [&](const torch::Tensor& tensor) {
    return tensor.to(type == torch::kBFloat16 ? torch::kFloat32 : type).clone();
  };
  const auto maps = own(setting.maps).set_requires_grad(true);
  auto added = own(setting.added);
  if (added.defined()) added.set_requires_grad(true);
  const BatchNorm norm{.weight = parameter(setting.weight).set_requires_grad(true),
                       .bias = parameter(setting.bias).set_requires_grad(true),
                       .running_mean = parameter(setting.running_mean),
                       .running_variance = parameter(setting.running_variance),
                       .momentum = 0.1,
                       .epsilon = 1e-5};
  torch::Tensor result;
  if (is_fused) {
    result = batch_norm_relu(maps, norm, added);
  } else {
    result = torch::batch_norm(maps, norm.weight, norm.bias, norm.running_mean,
                               norm.running_variance, true, norm.momentum, norm.epsilon, false);
    result = torch::relu(added.defined() ? result + added : result);
  }
  result.backward(own(setting.seen));
  std::vector<torch::Tensor> all = {result.detach(),  maps.grad(),       norm.weight.grad(),
                                    norm.bias.grad(), norm.running_mean, norm.running_variance};
  if (added.defined()) all.push_back(added.grad());
  return all;
}

// Largest differences in units of the largest value, of all outcomes.
void expect_like_double(const Setting& setting, double tolerance,
                        torch::ScalarType type = torch::kFloat32) {
  const auto fused = outcomes(setting, type, true);
  const auto expected = outcomes(setting, torch::kFloat64, false);
  ASSERT_EQ(fused.size(), expected.size());
  for (size_t i = 0; i < fused.size(); ++i) {
    const auto off = (fused[i].to(torch::kFloat64) - expected[i]).abs().max() /
                     (expected[i].abs().max() + 1e-30);
    EXPECT_LT(off.item<double>(), tolerance) << "outcome " << i;
  }
}

TEST(BatchNormRelu, IsLibTorchsInDoublePrecision) {
  for (const bool is_added : {false, true}) {
    expect_like_double(setting_of({8, 16, 12, 12}, is_added), 1e-5);
    expect_like_double(setting_of({3, 5, 7, 3}, is_added), 1e-5);      // odd sizes
    expect_like_double(setting_of({2, 3, 2, 2}, is_added), 1e-4);      // few pixels
    expect_like_double(setting_of({64, 64, 16, 16}, is_added), 1e-5);  // many parts
  }
}

// Of maps, sums and gradients that bfloat16 can hold; what is off is the rounding of results.
TEST(BatchNormRelu, RoundsOnlyResultsOfBfloat16) {
  for (const bool is_added : {false, true}) {
    auto setting = setting_of({8, 16, 12, 12}, is_added);
    for (auto* maps : {&setting.maps, &setting.added, &setting.seen}) {
      if (maps->defined()) *maps = maps->to(torch::kBFloat16).to(torch::kFloat32);
    }
    expect_like_double(setting, 1.0 / 256, torch::kBFloat16);
    EXPECT_EQ(outcomes(setting, torch::kBFloat16, true).at(0).scalar_type(), torch::kBFloat16);
    const auto statistics = outcomes(setting, torch::kBFloat16, true);
    const auto expected = outcomes(setting, torch::kFloat64, false);
    for (const size_t sums : {2, 3, 4, 5}) {  // of weight, bias, running mean and variance
      const auto off = (statistics[sums].to(torch::kFloat64) - expected[sums]).abs().max();
      EXPECT_LT(off.item<double>(), 1e-4 * expected[sums].abs().max().item<double>()) << sums;
    }
  }
}

TEST(BatchNormRelu, SurvivesAMeanThatIsLargeBesideTheDeviation) {
  expect_like_double(setting_of({8, 16, 12, 12}, false, 1000), 2e-3);
  // LibTorch in float32 is no better there.
  const auto setting = setting_of({8, 16, 12, 12}, false, 1000);
  const auto expected = outcomes(setting, torch::kFloat64, false).at(0);
  const auto off = [&](bool is_fused) {
    return (outcomes(setting, torch::kFloat32, is_fused).at(0).to(torch::kFloat64) - expected)
        .abs()
        .max()
        .item<double>();
  };
  EXPECT_LT(off(true), 2 * off(false) + 1e-6);
}

TEST(BatchNormRelu, GivesTheSameBitsOnAnyNumberOfThreads) {
  const auto setting = setting_of({32, 32, 16, 16}, true);
  const auto before = at::get_num_threads();
  at::set_num_threads(1);
  const auto alone = outcomes(setting, torch::kFloat32, true);
  at::set_num_threads(3);
  const auto together = outcomes(setting, torch::kFloat32, true);
  at::set_num_threads(before);
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(alone[i].equal(together[i])) << i;
}

TEST(BatchNormRelu, MakesBiasesOfConstantMaps) {
  auto setting = setting_of({4, 2, 3, 3}, false);
  setting.maps.fill_(7);
  setting.bias = torch::tensor({0.25F, -1.0F});
  const auto result = outcomes(setting, torch::kFloat32, true).at(0);
  EXPECT_TRUE(result.select(1, 0).eq(0.25).all().item<bool>());
  EXPECT_TRUE(result.select(1, 1).eq(0).all().item<bool>());
}

TEST(BatchNormRelu, HandsOnNan) {
  auto setting = setting_of({4, 2, 3, 3}, false);
  setting.maps[0][1][0][0] = NAN;
  const auto result = outcomes(setting, torch::kFloat32, true).at(0);
  EXPECT_TRUE(result.select(1, 1).isnan().all().item<bool>());
  EXPECT_FALSE(result.select(1, 0).isnan().any().item<bool>());
}

TEST(RunningNormRelu, IsLibTorchsInEvaluation) {
  for (const bool is_added : {false, true}) {
    const auto setting = setting_of({6, 16, 9, 7}, is_added);
    const BatchNorm norm{.weight = setting.weight,
                         .bias = setting.bias,
                         .running_mean = setting.running_mean.clone(),
                         .running_variance = setting.running_variance.clone()};
    const auto result = running_norm_relu(setting.maps, norm, setting.added);
    auto expected =
        torch::batch_norm(setting.maps.to(torch::kFloat64), norm.weight.to(torch::kFloat64),
                          norm.bias.to(torch::kFloat64), norm.running_mean.to(torch::kFloat64),
                          norm.running_variance.to(torch::kFloat64), false, 0.1, 1e-5, false);
    if (is_added) expected = expected + setting.added;
    const auto off = (result - expected.relu()).abs().max().item<double>();
    EXPECT_LT(off, 1e-5 * expected.abs().max().item<double>());
    EXPECT_TRUE(norm.running_mean.equal(setting.running_mean));  // nothing is remembered
    EXPECT_TRUE(norm.running_variance.equal(setting.running_variance));
    EXPECT_FALSE(result.requires_grad());
  }
}

TEST(BatchNormRelu, HasFirstDerivativesOnly) {
  const auto setting = setting_of({2, 4, 3, 3}, false);
  const auto maps = setting.maps.clone().set_requires_grad(true);
  const BatchNorm norm{.weight = setting.weight,
                       .bias = setting.bias,
                       .running_mean = setting.running_mean,
                       .running_variance = setting.running_variance};
  const auto sum = batch_norm_relu(maps, norm).square().sum();
  EXPECT_EQ(error_of([&] {
              torch::autograd::grad({sum}, {maps}, {}, /*retain_graph=*/true,
                                    /*create_graph=*/true);
            }),
            "batch_norm_relu: has first derivatives only; those of higher order need a "
            "ReferenceOpsScope");
}

TEST(BatchNormRelu, SaysWhatItCannotDo) {
  const auto setting = setting_of({2, 4, 3, 3}, false);
  const BatchNorm norm{.weight = setting.weight,
                       .bias = setting.bias,
                       .running_mean = setting.running_mean,
                       .running_variance = setting.running_variance};
  EXPECT_TRUE(suits_batch_norm_relu(setting.maps, norm));
  EXPECT_FALSE(suits_batch_norm_relu(setting.maps.contiguous(), norm));
  EXPECT_FALSE(suits_batch_norm_relu(setting.maps.to(torch::kFloat64), norm));
  auto without_bias = norm;
  without_bias.bias = torch::Tensor();
  EXPECT_FALSE(suits_batch_norm_relu(setting.maps, without_bias));
  EXPECT_EQ(error_of([&] { batch_norm_relu(setting.maps.to(torch::kFloat64), norm); }),
            "batch_norm_relu: needs float32 or bfloat16 maps in channels-last, more than one pixel "
            "of each "
            "channel and a weight, bias, mean and variance for each, got maps [2, 4, 3, 3]");
  EXPECT_EQ(error_of([&] {
              batch_norm_relu(setting.maps, norm, torch::zeros({1, 4, 3, 3}));
            }),
            "batch_norm_relu: what is added must be [2, 4, 3, 3], is [1, 4, 3, 3]");
}

}  // namespace kelvin::batch_norm_relu_test
