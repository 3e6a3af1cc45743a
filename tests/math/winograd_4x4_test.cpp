#include "kelvin/math/winograd_4x4.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "kelvin/math/winograd_4x4_kernels.h"
#include "kelvin/math/winograd_tensors.h"
#include "tests/support/tensors.h"

// What one core computes is in winograd_4x4_kernels_test.cpp; here is how it is dealt to several.

namespace kelvin {
namespace {

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;

torch::Tensor maps_of(const torch::Tensor& values) {
  return values.to(torch::kFloat32).contiguous(kChannelsLast);
}

template <class Work>
auto on_threads(int threads, const Work& work) {
  const auto before = at::get_num_threads();
  at::set_num_threads(threads);
  auto result = work();
  at::set_num_threads(before);
  return result;
}

// The largest difference, in units of the largest value.
double difference(const torch::Tensor& ours, const torch::Tensor& exact) {
  return ((ours.to(torch::kFloat64) - exact).abs().max() / exact.abs().max()).item<double>();
}

constexpr double kRounding = 2e-5;

class Winograd4x4 : public testing::TestWithParam<WinogradShape> {
 protected:
  void SetUp() override {
    if (!has_winograd_4x4()) GTEST_SKIP() << "no AVX2";
  }
  torch::Tensor convolved(const torch::Tensor& maps) const {
    auto shape = shape_;
    shape.images = maps.size(0);
    return winograd_4x4(shape, maps, layout_of<const float>(weight_), bias_.data_ptr<float>());
  }
  torch::Tensor weight_gradient(const torch::Tensor& weight) const {
    return winograd_4x4_gradient_of(weight, shape_, maps_, gradients_);
  }

  const WinogradShape shape_ = GetParam();
  const torch::Tensor maps_ =
      maps_of(noise({shape_.images, shape_.inputs, shape_.height, shape_.width}, 1));
  const torch::Tensor gradients_ =
      maps_of(noise({shape_.images, shape_.outputs, shape_.height, shape_.width}, 2));
  const torch::Tensor weight_ = noise({shape_.outputs, shape_.inputs, 3, 3}, 3).to(torch::kFloat32);
  const torch::Tensor bias_ = noise({shape_.outputs}, 4).to(torch::kFloat32);
};

TEST_P(Winograd4x4, GivesAnImageTheSameBitsAloneAndAmongOthersOnAnyNumberOfThreads) {
  const auto alone = on_threads(1, [&] { return convolved(maps_); });
  EXPECT_LT(difference(alone, torch::conv2d(maps_.to(torch::kFloat64), weight_.to(torch::kFloat64),
                                            bias_.to(torch::kFloat64), 1, 1)),
            kRounding);
  EXPECT_TRUE(alone.is_contiguous(kChannelsLast));
  for (const int threads : {2, 3}) {
    EXPECT_TRUE(on_threads(threads, [&] { return convolved(maps_); }).equal(alone)) << threads;
  }
  const auto last = maps_.narrow(0, shape_.images - 1, 1).contiguous(kChannelsLast);
  EXPECT_TRUE(convolved(last).equal(alone.narrow(0, shape_.images - 1, 1)));
}

TEST_P(Winograd4x4, HasAGradientOfItsWeightsInTheirLayout) {
  const auto w = weight_.to(torch::kFloat64).set_requires_grad(true);
  torch::conv2d(maps_.to(torch::kFloat64), w, {}, 1, 1).backward(gradients_.to(torch::kFloat64));
  for (const int threads : {1, 2, 3}) {
    const auto plain = on_threads(threads, [&] { return weight_gradient(weight_); });
    EXPECT_LT(difference(plain, w.grad()), kRounding) << threads;
    EXPECT_TRUE(plain.is_contiguous());
    const auto last =
        on_threads(threads, [&] { return weight_gradient(weight_.contiguous(kChannelsLast)); });
    EXPECT_TRUE(last.is_contiguous(kChannelsLast));
    EXPECT_TRUE(last.equal(plain)) << threads;  // and so it is the same every time
  }
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

}  // namespace
}  // namespace kelvin
