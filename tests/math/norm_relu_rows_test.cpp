#include "kelvin/math/norm_relu_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace kelvin {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

constexpr int64_t kRows = 150;  // two full sums of float32 and a rest that is no multiple of four
constexpr int64_t kChannels = 5;

Floats drawn(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Floats values(static_cast<size_t>(count));
  for (auto& value : values) value = normal(generator);
  return values;
}

class NormReluRows : public testing::Test {
 protected:
  float x(int64_t row, int64_t channel) const { return x_.at(row * kChannels + channel); }
  float z(int64_t row, int64_t channel) const {
    return x(row, channel) * scale_.at(channel) + offset_.at(channel);
  }
  ChannelMap map() const { return {.scale = scale_.data(), .offset = offset_.data()}; }

  const Floats x_ = drawn(kRows * kChannels, 1);
  const Floats gradient_ = drawn(kRows * kChannels, 2);
  const Floats added_ = drawn(kRows * kChannels, 3);
  const Floats scale_ = drawn(kChannels, 4);
  const Floats offset_ = drawn(kChannels, 5);
  const Floats mean_ = drawn(kChannels, 6);
};

TEST_F(NormReluRows, SumMomentsAboutAShift) {
  Doubles sums(2 * kChannels, 99);  // whatever was there is gone
  moments_of_rows(x_.data(), kChannels, mean_.data(), 3, kRows, sums.data());
  for (int64_t c = 0; c < kChannels; ++c) {
    double sum = 0;
    double squares = 0;
    for (int64_t row = 3; row < kRows; ++row) {
      const double distance = double{x(row, c)} - double{mean_.at(c)};
      sum += distance;
      squares += distance * distance;
    }
    EXPECT_NEAR(sums.at(c), sum, 1e-4);
    EXPECT_NEAR(sums.at(kChannels + c), squares, 1e-4 * squares);
  }
}

TEST_F(NormReluRows, MapAddAndCutOff) {
  Floats y(x_.size(), -1);
  norm_relu_rows(x_.data(), kChannels, map(), nullptr, 1, kRows, y.data());
  EXPECT_EQ(y.at(0), -1);  // not in the range
  for (int64_t row = 1; row < kRows; ++row) {
    for (int64_t c = 0; c < kChannels; ++c) {
      EXPECT_NEAR(y.at(row * kChannels + c), std::max(z(row, c), 0.0F), 1e-5);
    }
  }
  norm_relu_rows(x_.data(), kChannels, map(), added_.data(), 0, kRows, y.data());
  EXPECT_NEAR(y.at(7), std::max(z(1, 2) + added_.at(7), 0.0F), 1e-5);
}

TEST_F(NormReluRows, KeepNan) {
  const Floats x = {std::numeric_limits<float>::quiet_NaN(), -1};
  const Floats ones = {1, 1};
  const Floats zeros = {0, 0};
  Floats y(2, -1);
  norm_relu_rows(x.data(), 2, {.scale = ones.data(), .offset = zeros.data()}, nullptr, 0, 1,
                 y.data());
  EXPECT_TRUE(std::isnan(y.at(0)));
  EXPECT_EQ(y.at(1), 0);
}

TEST_F(NormReluRows, SumGradientsOfWhatWasPositive) {
  for (const bool is_added : {false, true}) {
    Floats y(x_.size());
    norm_relu_rows(x_.data(), kChannels, map(), is_added ? added_.data() : nullptr, 0, kRows,
                   y.data());
    const NormReluGradient<float> rows{.x = x_.data(),
                                       .gradient = gradient_.data(),
                                       .y = is_added ? y.data() : nullptr,
                                       .channels = kChannels,
                                       .map = map(),
                                       .mean = mean_.data()};
    Floats masked(x_.size(), -7);
    auto* mask = is_added ? masked.data() : nullptr;
    Doubles sums(2 * kChannels);
    gradient_sums_of_rows(rows, 0, kRows, mask, sums.data());
    const Floats a = drawn(kChannels, 7);
    const Floats b = drawn(kChannels, 8);
    const Floats k = drawn(kChannels, 9);
    Floats result(x_.size());
    gradient_rows(rows, {.of_gradient = a.data(), .of_x = b.data(), .constant = k.data()}, mask, 0,
                  kRows, result.data());
    for (int64_t c = 0; c < kChannels; ++c) {
      double sum = 0;
      double products = 0;
      for (int64_t row = 0; row < kRows; ++row) {
        const auto i = row * kChannels + c;
        const double g = y.at(i) > 0 ? double{gradient_.at(i)} : 0.0;
        const double distance = double{x(row, c)} - double{mean_.at(c)};
        sum += g;
        products += g * distance;
        if (is_added) {
          EXPECT_EQ(masked.at(i), static_cast<float>(g));
        }
        EXPECT_NEAR(result.at(i), g * a.at(c) + distance * b.at(c) + k.at(c), 1e-5);
      }
      EXPECT_NEAR(sums.at(c), sum, 1e-4);
      EXPECT_NEAR(sums.at(kChannels + c), products, 1e-3);
    }
  }
}

}  // namespace
}  // namespace kelvin
