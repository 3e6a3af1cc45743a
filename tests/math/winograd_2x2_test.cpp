#include "kelvin/math/winograd_2x2.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <vector>

#include "kelvin/math/winograd_2x2_kernels.h"
#include "kelvin/math/winograd_tensors.h"
#include "tests/support/tensors.h"

// What one core computes is in winograd_2x2_kernels_test.cpp; here is how it is dealt to several.

namespace kelvin {
namespace {

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;

torch::Tensor maps_of(const torch::Tensor& values) {
  return values.to(torch::kBFloat16).contiguous(kChannelsLast);
}

template <class Work>
auto on_threads(int threads, const Work& work) {
  const auto before = at::get_num_threads();
  at::set_num_threads(threads);
  auto result = work();
  at::set_num_threads(before);
  return result;
}

double error(const torch::Tensor& ours, const torch::Tensor& exact) {
  return ((ours.to(torch::kFloat64) - exact).norm() / exact.norm()).item<double>();
}

constexpr double kRounding = 7e-3;  // as in convolution_3x3_test.cpp

class Winograd2x2 : public testing::TestWithParam<WinogradShape> {
 protected:
  void SetUp() override {
    if (!has_winograd_2x2()) GTEST_SKIP() << "no products of bfloat16";
  }
  torch::Tensor convolved(const torch::Tensor& maps) const {
    auto shape = shape_;
    shape.images = maps.size(0);
    return winograd_2x2(shape, maps, layout_of<const float>(weight_), bias_.data_ptr<float>());
  }
  torch::Tensor weight_gradient(const torch::Tensor& weight) const {
    return winograd_2x2_gradient_of(weight, shape_, maps_, gradients_);
  }

  const WinogradShape shape_ = GetParam();
  const torch::Tensor maps_ =
      maps_of(noise({shape_.images, shape_.inputs, shape_.height, shape_.width}, 1));
  const torch::Tensor gradients_ =
      maps_of(noise({shape_.images, shape_.outputs, shape_.height, shape_.width}, 2));
  const torch::Tensor weight_ = noise({shape_.outputs, shape_.inputs, 3, 3}, 3).to(torch::kFloat32);
  const torch::Tensor bias_ = noise({shape_.outputs}, 4).to(torch::kFloat32);
};

TEST_P(Winograd2x2, GivesAnImageTheSameBitsAloneAndAmongOthersOnAnyNumberOfThreads) {
  const auto alone = on_threads(1, [&] { return convolved(maps_); });
  EXPECT_LT(error(alone, torch::conv2d(maps_.to(torch::kFloat64), weight_.to(torch::kFloat64),
                                       bias_.to(torch::kFloat64), 1, 1)),
            kRounding);
  EXPECT_TRUE(alone.is_contiguous(kChannelsLast));
  for (const int threads : {2, 3}) {
    EXPECT_TRUE(on_threads(threads, [&] { return convolved(maps_); }).equal(alone)) << threads;
  }
  const auto last = maps_.narrow(0, shape_.images - 1, 1).contiguous(kChannelsLast);
  EXPECT_TRUE(convolved(last).equal(alone.narrow(0, shape_.images - 1, 1)));
}

TEST_P(Winograd2x2, HasAGradientOfItsWeightsInTheirLayout) {
  const auto w = weight_.to(torch::kFloat64).set_requires_grad(true);
  torch::conv2d(maps_.to(torch::kFloat64), w, {}, 1, 1).backward(gradients_.to(torch::kFloat64));
  for (const int threads : {1, 2, 3}) {
    const auto plain = on_threads(threads, [&] { return weight_gradient(weight_); });
    EXPECT_LT(error(plain, w.grad()), kRounding) << threads;
    EXPECT_TRUE(plain.is_contiguous());
    const auto last =
        on_threads(threads, [&] { return weight_gradient(weight_.contiguous(kChannelsLast)); });
    EXPECT_TRUE(last.is_contiguous(kChannelsLast));
    EXPECT_TRUE(last.equal(plain)) << threads;  // and so it is the same every time
  }
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

}  // namespace
}  // namespace kelvin
