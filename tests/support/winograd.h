#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "kelvin/kernels/winograd.h"
#include "kelvin/kernels/winograd_2x2.h"
#include "kelvin/kernels/winograd_4x4.h"
#include "tests/support/tensors.h"

namespace kelvin {

// All bits set: a NaN in bfloat16 and in float32.  What a kernel reads must be what it wrote.
inline std::shared_ptr<void> nan_memory(int64_t bytes) {
  const auto memory = std::make_shared<std::vector<char>>(static_cast<size_t>(bytes) + 64, '\xff');
  const auto place = reinterpret_cast<uintptr_t>(memory->data());
  return {memory, memory->data() + (64 - place % 64)};
}

// One range that is all of it.
inline WinogradWorkers whole_ranges(int64_t threads = 1) {
  return {.threads = threads,
          .loop = [](int64_t count, int64_t, const auto& work) { work(0, count); },
          .memory = nan_memory};
}

// Every place alone, from the last to the first, so that none may write what is another's.
inline WinogradWorkers single_places(int64_t threads = 1) {
  return {.threads = threads,
          .loop =
              [](int64_t count, int64_t, const auto& work) {
                for (auto i = count - 1; i >= 0; --i) work(i, i + 1);
              },
          .memory = nan_memory};
}

// Notes how long loops are.
inline WinogradWorkers noting(std::vector<int64_t>& counts, int64_t threads = 1) {
  return {.threads = threads,
          .loop =
              [&counts](int64_t count, int64_t, const auto& work) {
                counts.push_back(count);
                work(0, count);
              },
          .memory = nan_memory};
}

// Maps as the kernels take them, in channels-last.
inline torch::Tensor winograd_maps(const torch::Tensor& values, torch::ScalarType type) {
  return values.to(type).contiguous(torch::MemoryFormat::ChannelsLast);
}

// Transforms of small whole numbers are bfloat16 as they are, if those of weights are multiples of
// 4, and sums of their products are float32: results must be those of float64, rounded once.
class Winograd2x2OnWholeNumbers : public testing::TestWithParam<WinogradShape> {
 protected:
  void SetUp() override {
    if (!has_winograd_2x2()) GTEST_SKIP() << "no products of bfloat16";
  }

  static torch::Tensor whole(const std::vector<int64_t>& sizes, uint64_t seed) {
    return (2 * noise(sizes, seed)).round().clamp(-3, 3);
  }

  const WinogradShape shape_ = GetParam();
  const torch::Tensor x_ =
      whole({shape_.images, shape_.inputs, shape_.height, shape_.width}, 1).set_requires_grad(true);
  const torch::Tensor w_ =
      (4 * whole({shape_.outputs, shape_.inputs, 3, 3}, 2)).set_requires_grad(true);
  const torch::Tensor seen_ =
      whole({shape_.images, shape_.outputs, shape_.height, shape_.width}, 3);
  const torch::Tensor maps_ = winograd_maps(x_.detach(), torch::kBFloat16);
  const torch::Tensor gradients_ = winograd_maps(seen_, torch::kBFloat16);
};

// One tile; maps that tiles do not cover exactly, rows of an odd number of them; more outputs than
// a panel has; more rows than a block has, of narrow and of wide layers.
inline std::vector<WinogradShape> winograd_2x2_shapes() {
  return {{.images = 1, .height = 2, .width = 2, .inputs = 16, .outputs = 16},
          {.images = 2, .height = 5, .width = 7, .inputs = 16, .outputs = 48},
          {.images = 3, .height = 3, .width = 2, .inputs = 32, .outputs = 16},
          {.images = 1, .height = 4, .width = 33, .inputs = 16, .outputs = 80},
          {.images = 3, .height = 32, .width = 32, .inputs = 16, .outputs = 16},
          {.images = 1, .height = 7, .width = 258, .inputs = 80, .outputs = 64}};
}

// The kernels of 4x4 tiles on plain arrays, without tensors.
class Winograd4x4OnArrays : public testing::Test {
 protected:
  using Floats = std::vector<float>;

  void SetUp() override {
    if (!has_winograd_4x4()) GTEST_SKIP() << "no AVX2";
  }

  static Floats drawn(int64_t count, unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    Floats values(static_cast<size_t>(count));
    for (auto& value : values) value = normal(generator);
    return values;
  }

  static double product(const Floats& left, const Floats& right) {
    return std::inner_product(left.begin(), left.end(), right.begin(), 0.0, std::plus<>(),
                              [](float a, float b) { return double{a} * double{b}; });
  }

  template <class Number>
  static WinogradWeights<Number> channels_last(Number* weights, int64_t inputs) {
    return {.data = weights,
            .output_step = 9 * inputs,
            .row_step = 3 * inputs,
            .column_step = inputs,
            .input_step = 1};
  }

  static constexpr WinogradShape kShape = {
      .images = 2, .height = 6, .width = 9, .inputs = 16, .outputs = 32};
};

}  // namespace kelvin
