#include "kelvin/ops/convolution_3x3.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "kelvin/kernels/winograd_2x2.h"
#include "kelvin/kernels/winograd_4x4.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"
#include "tests/support/winograd.h"

// What one core computes is in tests/kernels/winograd_*_test.cpp; here is how it is dealt to
// several.

namespace kelvin::convolution_3x3_test {

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;

template <class Work>
auto on_threads(int threads, const Work& work) {
  const auto before = at::get_num_threads();
  at::set_num_threads(threads);
  auto result = work();
  at::set_num_threads(before);
  return result;
}

using Distance = double (*)(const torch::Tensor&, const torch::Tensor&);

double error(const torch::Tensor& ours, const torch::Tensor& exact) {
  return ((ours.to(torch::kFloat64) - exact).norm() / exact.norm()).item<double>();
}

// The largest difference, in units of the largest value.
double difference(const torch::Tensor& ours, const torch::Tensor& exact) {
  return ((ours.to(torch::kFloat64) - exact).abs().max() / exact.abs().max()).item<double>();
}

constexpr double kRounding = 7e-3;
constexpr double kFloatRounding = 2e-5;

// Of maps of one type: results are less than `rounding` from those of float64.
class WinogradOnThreads : public testing::TestWithParam<WinogradShape> {
 protected:
  WinogradOnThreads(torch::ScalarType type, Distance distance, double rounding)
      : distance_(distance), rounding_(rounding), type_(type) {}

  void expect_same_bits_alone_and_among_others() const {
    const auto alone = on_threads(1, [&] { return convolved(maps_); });
    EXPECT_LT(distance_(alone, torch::conv2d(maps_.to(torch::kFloat64), weight_.to(torch::kFloat64),
                                             bias_.to(torch::kFloat64), 1, 1)),
              rounding_);
    EXPECT_TRUE(alone.is_contiguous(kChannelsLast));
    for (const int threads : {2, 3}) {
      EXPECT_TRUE(on_threads(threads, [&] { return convolved(maps_); }).equal(alone)) << threads;
    }
    const auto last = maps_.narrow(0, shape_.images - 1, 1).contiguous(kChannelsLast);
    EXPECT_TRUE(convolved(last).equal(alone.narrow(0, shape_.images - 1, 1)));
  }

  void expect_a_weight_gradient_in_the_layout_of_the_weights() const {
    const auto w = weight_.to(torch::kFloat64).set_requires_grad(true);
    torch::conv2d(maps_.to(torch::kFloat64), w, {}, 1, 1).backward(gradients_.to(torch::kFloat64));
    for (const int threads : {1, 2, 3}) {
      const auto plain = on_threads(threads, [&] { return weight_gradient(weight_); });
      EXPECT_LT(distance_(plain, w.grad()), rounding_) << threads;
      EXPECT_TRUE(plain.is_contiguous());
      const auto last =
          on_threads(threads, [&] { return weight_gradient(weight_.contiguous(kChannelsLast)); });
      EXPECT_TRUE(last.is_contiguous(kChannelsLast));
      EXPECT_TRUE(last.equal(plain)) << threads;  // and so it is the same every time
    }
  }

 private:
  torch::Tensor convolved(const torch::Tensor& maps) const {
    return winograd_forward(maps, shape_.outputs, layout_of<const float>(weight_),
                            bias_.data_ptr<float>());
  }
  torch::Tensor weight_gradient(const torch::Tensor& weight) const {
    return winograd_weight_gradient(weight, maps_, gradients_);
  }

  const Distance distance_;
  const double rounding_;
  const torch::ScalarType type_;
  const WinogradShape shape_ = GetParam();
  const torch::Tensor maps_ =
      winograd_maps(noise({shape_.images, shape_.inputs, shape_.height, shape_.width}, 1), type_);
  const torch::Tensor gradients_ =
      winograd_maps(noise({shape_.images, shape_.outputs, shape_.height, shape_.width}, 2), type_);
  const torch::Tensor weight_ = noise({shape_.outputs, shape_.inputs, 3, 3}, 3).to(torch::kFloat32);
  const torch::Tensor bias_ = noise({shape_.outputs}, 4).to(torch::kFloat32);
};

class Winograd2x2 : public WinogradOnThreads {
 protected:
  Winograd2x2() : WinogradOnThreads(torch::kBFloat16, error, kRounding) {}

  void SetUp() override {
    if (!has_winograd_2x2()) GTEST_SKIP() << "no products of bfloat16";
  }
};

TEST_P(Winograd2x2, GivesAnImageTheSameBitsAloneAndAmongOthersOnAnyNumberOfThreads) {
  expect_same_bits_alone_and_among_others();
}

TEST_P(Winograd2x2, HasAGradientOfItsWeightsInTheirLayout) {
  expect_a_weight_gradient_in_the_layout_of_the_weights();
}

// Fewer rows of tiles than threads; rows that do not divide among threads, sums apart, several
// shares of each; wide layers, whose shares all threads have together.
INSTANTIATE_TEST_SUITE_P(
    Shapes, Winograd2x2,
    testing::Values(
        WinogradShape{.images = 1, .height = 3, .width = 3, .inputs = 16, .outputs = 32},
        WinogradShape{.images = 3, .height = 5, .width = 6, .inputs = 48, .outputs = 16},
        WinogradShape{.images = 4, .height = 33, .width = 32, .inputs = 16, .outputs = 16},
        WinogradShape{.images = 2, .height = 9, .width = 130, .inputs = 64, .outputs = 80}));

class Winograd4x4 : public WinogradOnThreads {
 protected:
  Winograd4x4() : WinogradOnThreads(torch::kFloat32, difference, kFloatRounding) {}

  void SetUp() override {
    if (!has_winograd_4x4()) GTEST_SKIP() << "no AVX2";
  }
};

TEST_P(Winograd4x4, GivesAnImageTheSameBitsAloneAndAmongOthersOnAnyNumberOfThreads) {
  expect_same_bits_alone_and_among_others();
}

TEST_P(Winograd4x4, HasAGradientOfItsWeightsInTheirLayout) {
  expect_a_weight_gradient_in_the_layout_of_the_weights();
}

// Fewer tiles than threads; tiles that do not divide among threads and reach beyond the maps; so
// many outputs that threads have some each; so many weights that outputs have their turns.
INSTANTIATE_TEST_SUITE_P(
    Shapes, Winograd4x4,
    testing::Values(
        WinogradShape{.images = 1, .height = 4, .width = 5, .inputs = 16, .outputs = 32},
        WinogradShape{.images = 3, .height = 7, .width = 9, .inputs = 32, .outputs = 48},
        WinogradShape{.images = 2, .height = 13, .width = 6, .inputs = 16, .outputs = 208},
        WinogradShape{.images = 2, .height = 5, .width = 4, .inputs = 512, .outputs = 144}));

using Case = WinogradShape;

// What a convolution and its three gradients come to.
struct Results {
  torch::Tensor output;
  torch::Tensor input_gradient;
  torch::Tensor weight_gradient;
  torch::Tensor bias_gradient;
};

template <class Convolution>
Results results_of(const Convolution& convolution, const torch::Tensor& input,
                   const torch::Tensor& weight, const torch::Tensor& bias,
                   const torch::Tensor& seen) {
  const auto x = input.detach().clone().set_requires_grad(true);
  const auto w = weight.detach().clone().set_requires_grad(true);
  const auto b = bias.detach().clone().set_requires_grad(true);
  const auto output = convolution(x, w, b);
  output.backward(seen.to(output.scalar_type()));
  return {output.detach(), x.grad(), w.grad(), b.grad()};
}

Results winograd(const torch::Tensor& x, const torch::Tensor& w, const torch::Tensor& b,
                 const torch::Tensor& seen) {
  return results_of([](const auto& input, const auto& weight,
                       const auto& bias) { return convolution_3x3(input, weight, bias); },
                    x, w, b, seen);
}

Results in_double(const torch::Tensor& x, const torch::Tensor& w, const torch::Tensor& b,
                  const torch::Tensor& seen) {
  return results_of([](const auto& input, const auto& weight,
                       const auto& bias) { return torch::conv2d(input, weight, bias, 1, 1); },
                    x.to(torch::kFloat64), w.to(torch::kFloat64), b.to(torch::kFloat64), seen);
}

class Convolution3x3 : public testing::TestWithParam<Case> {};

TEST_P(Convolution3x3, IsLibTorchsInDoublePrecision) {
  if (!has_winograd_4x4()) GTEST_SKIP() << "no AVX2";
  const auto [images, height, width, inputs, outputs] = GetParam();
  torch::manual_seed(0);
  const auto x = torch::randn({images, inputs, height, width});
  const auto w = torch::randn({outputs, inputs, 3, 3});
  const auto b = torch::randn({outputs});
  const auto seen = torch::randn({images, outputs, height, width});
  const auto expected = in_double(x, w, b, seen);
  for (const auto format : {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
    for (const int threads : {1, 2, 3}) {
      const auto before = at::get_num_threads();
      at::set_num_threads(threads);
      const auto ours =
          winograd(x.contiguous(format), w.contiguous(format), b, seen.contiguous(format));
      at::set_num_threads(before);
      constexpr double kTolerance = 2e-5;
      EXPECT_LT(difference(ours.output, expected.output), kTolerance);
      EXPECT_LT(difference(ours.input_gradient, expected.input_gradient), kTolerance);
      EXPECT_LT(difference(ours.weight_gradient, expected.weight_gradient), kTolerance);
      EXPECT_LT(difference(ours.bias_gradient, expected.bias_gradient), kTolerance);
    }
  }
}

// Maps that tiles of 4x4 cover exactly and not, one image and one tile, more tiles than one block
// takes, weights dealt by outputs and by images.
INSTANTIATE_TEST_SUITE_P(Shapes, Convolution3x3,
                         testing::Values(Case{2, 8, 8, 16, 32}, Case{3, 7, 9, 32, 16},
                                         Case{1, 4, 4, 16, 16}, Case{5, 32, 32, 16, 16},
                                         Case{2, 5, 4, 48, 80}, Case{3, 8, 8, 64, 256},
                                         Case{4, 4, 4, 256, 512}));

// What is rounded to bfloat16 is off by its 2^-9; direct products would be by half as much as this.
TEST_P(Convolution3x3, IsNearItInBfloat16) {
  if (!has_winograd_2x2()) GTEST_SKIP() << "no products of bfloat16";
  const auto [images, height, width, inputs, outputs] = GetParam();
  torch::manual_seed(0);
  const auto rounded = [](const torch::Tensor& tensor) { return tensor.to(torch::kBFloat16); };
  const auto x = rounded(torch::randn({images, inputs, height, width}));
  const auto w = torch::randn({outputs, inputs, 3, 3});
  const auto b = torch::randn({outputs});
  const auto seen = rounded(torch::randn({images, outputs, height, width}));
  const auto expected = in_double(x, w, b, seen.to(torch::kFloat64));
  for (const auto format : {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
    for (const int threads : {1, 2, 3}) {
      const auto before = at::get_num_threads();
      at::set_num_threads(threads);
      const auto ours =
          winograd(x.contiguous(format), w.contiguous(format), b, seen.contiguous(format));
      at::set_num_threads(before);
      EXPECT_EQ(ours.output.scalar_type(), torch::kBFloat16);
      EXPECT_EQ(ours.weight_gradient.scalar_type(), torch::kFloat32);
      constexpr double kTolerance = 7e-3;
      EXPECT_LT(error(ours.output, expected.output), kTolerance);
      EXPECT_LT(error(ours.input_gradient, expected.input_gradient), kTolerance);
      EXPECT_LT(error(ours.weight_gradient, expected.weight_gradient), kTolerance);
      EXPECT_LT(error(ours.bias_gradient, expected.bias_gradient), 1e-5);
    }
  }
}

TEST(Convolution3x3, IsExactOnSmallWholeNumbers) {
  if (!has_winograd_4x4()) GTEST_SKIP() << "no AVX2";
  // A weight that hands on the pixel to the right: whatever the tiles are, maps must be shifted.
  const auto x = torch::arange(2 * 16 * 9 * 6, torch::kFloat32).reshape({2, 16, 9, 6}).remainder(7);
  auto w = torch::zeros({16, 16, 3, 3});
  for (int64_t channel = 0; channel < 16; ++channel) w[channel][channel][1][2] = 1;
  const auto output = convolution_3x3(x, w);
  const auto shifted = torch::constant_pad_nd(x.slice(3, 1), {0, 1});
  EXPECT_LT((output - shifted).abs().max().item<double>(), 1e-5);
}

// Transforms of such numbers are bfloat16 as they are.
TEST(Convolution3x3, IsExactOnSmallWholeNumbersInBfloat16) {
  if (!has_winograd_2x2()) GTEST_SKIP() << "no products of bfloat16";
  for (const int64_t width : {2, 5, 6}) {
    const auto x = torch::arange(2 * 16 * 3 * width, torch::kFloat32)
                       .reshape({2, 16, 3, width})
                       .remainder(7)
                       .to(torch::kBFloat16);
    auto w = torch::zeros({16, 16, 3, 3});
    for (int64_t channel = 0; channel < 16; ++channel) w[channel][channel][1][2] = 1;
    const auto shifted = torch::constant_pad_nd(x.slice(3, 1), {0, 1});
    EXPECT_TRUE(convolution_3x3(x, w).equal(shifted)) << width;
  }
}

TEST(Convolution3x3, IsTheSameEveryTime) {
  if (!has_winograd_4x4()) GTEST_SKIP() << "no AVX2";
  torch::manual_seed(1);
  for (const auto type : {torch::kFloat32, torch::kBFloat16}) {
    if (type == torch::kBFloat16 && !has_winograd_2x2()) continue;
    const auto x = torch::randn({8, 16, 16, 16}).to(type);
    const auto w = torch::randn({16, 16, 3, 3});
    const auto b = torch::randn({16});
    const auto seen = torch::randn({8, 16, 16, 16});
    const auto first = winograd(x, w, b, seen);
    const auto again = winograd(x, w, b, seen);
    EXPECT_TRUE(first.output.equal(again.output));
    EXPECT_TRUE(first.input_gradient.equal(again.input_gradient));
    EXPECT_TRUE(first.weight_gradient.equal(again.weight_gradient));
  }
}

TEST(Convolution3x3, ComputesOnlyTheGradientsThatAreWanted) {
  if (!has_winograd_4x4()) GTEST_SKIP() << "no AVX2";
  const auto x = torch::randn({2, 16, 8, 8});
  const auto w = torch::randn({16, 16, 3, 3}).set_requires_grad(true);
  convolution_3x3(x, w).sum().backward();
  EXPECT_TRUE(w.grad().defined());
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(convolution_3x3(x, w.detach()).requires_grad());
}

TEST(Convolution3x3, HandsOnWhatIsNotFinite) {
  if (!has_winograd_4x4()) GTEST_SKIP() << "no AVX2";
  auto x = torch::zeros({1, 16, 8, 8});
  x[0][3][2][2] = NAN;
  const auto w = torch::ones({16, 16, 3, 3});
  EXPECT_TRUE(convolution_3x3(x, w).isnan().any().item<bool>());
  if (!has_winograd_2x2()) return;
  EXPECT_TRUE(convolution_3x3(x.to(torch::kBFloat16), w).isnan().any().item<bool>());
}

TEST(Convolution3x3, HasFirstDerivativesOnly) {
  if (!has_winograd_4x4()) GTEST_SKIP() << "no AVX2";
  const auto x = torch::ones({1, 16, 4, 4}).set_requires_grad(true);
  const auto sum = convolution_3x3(x, torch::ones({16, 16, 3, 3})).square().sum();
  EXPECT_EQ(error_of([&] {
              torch::autograd::grad({sum}, {x}, {}, /*retain_graph=*/true,
                                    /*create_graph=*/true);
            }),
            "convolution_3x3: has first derivatives only; those of higher order need a "
            "ReferenceOpsScope");
}

TEST(Convolution3x3, SaysWhatItCannotDo) {
  const auto suits = [](const torch::Tensor& x, const torch::Tensor& w) {
    return suits_convolution_3x3(x, w);
  };
  const auto x = torch::zeros({1, 16, 8, 8});
  const auto w = torch::zeros({16, 16, 3, 3});
  EXPECT_EQ(suits(x, w), has_winograd_4x4());
  EXPECT_EQ(suits(torch::zeros({1, 16, 2, 2}, torch::kBFloat16), w), has_winograd_2x2());
  EXPECT_FALSE(suits(torch::zeros({1, 16, 1, 2}, torch::kBFloat16), w));
  EXPECT_FALSE(suits(x.to(torch::kBFloat16), w.to(torch::kBFloat16)));
  EXPECT_FALSE(suits(x.to(torch::kFloat64), w.to(torch::kFloat64)));
  EXPECT_FALSE(suits(torch::zeros({1, 3, 8, 8}), torch::zeros({16, 3, 3, 3})));
  EXPECT_FALSE(suits(x, torch::zeros({16, 16, 1, 1})));
  EXPECT_FALSE(suits(torch::zeros({1, 16, 2, 2}), w));
  EXPECT_FALSE(suits(torch::zeros({0, 16, 8, 8}), w));
  EXPECT_EQ(
      error_of([&] {
        convolution_3x3(x, torch::zeros({16, 16, 1, 1}));
      }),
      "convolution_3x3: needs 16 channels or multiples of it, 3x3 weights in float32 and maps "
      "of at least 4x4 in float32 or 2x2 in bfloat16, got input [1, 16, 8, 8] and weight "
      "[16, 16, 1, 1]");
}

}  // namespace kelvin::convolution_3x3_test
