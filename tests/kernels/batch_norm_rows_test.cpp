#include "kelvin/kernels/batch_norm_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace kelvin::batch_norm_rows_test {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

constexpr int64_t kRows = 150;  // two full sums of float32 and a rest that is no multiple of four

Floats drawn(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Floats values(static_cast<size_t>(count));
  for (auto& value : values) value = normal(generator);
  return values;
}

// Of so many channels: no multiple of any vector, and one and two vectors of sixteen.
class NormReluRows : public testing::TestWithParam<int64_t> {
 protected:
  const int64_t channels_ = GetParam();

  float x(int64_t row, int64_t channel) const { return x_.at(row * channels_ + channel); }
  float z(int64_t row, int64_t channel) const {
    return x(row, channel) * scale_.at(channel) + offset_.at(channel);
  }
  ChannelMap map() const { return {.scale = scale_.data(), .offset = offset_.data()}; }

  const Floats x_ = drawn(kRows * channels_, 1);
  const Floats gradient_ = drawn(kRows * channels_, 2);
  const Floats added_ = drawn(kRows * channels_, 3);
  const Floats scale_ = drawn(channels_, 4);
  const Floats offset_ = drawn(channels_, 5);
  const Floats mean_ = drawn(channels_, 6);
};

TEST_P(NormReluRows, SumMomentsAboutAShift) {
  Doubles sums(2 * channels_, 99);  // whatever was there is gone
  moments_of_rows(x_.data(), channels_, mean_.data(), 3, kRows, sums.data());
  for (int64_t c = 0; c < channels_; ++c) {
    double sum = 0;
    double squares = 0;
    for (int64_t row = 3; row < kRows; ++row) {
      const double distance = double{x(row, c)} - double{mean_.at(c)};
      sum += distance;
      squares += distance * distance;
    }
    EXPECT_NEAR(sums.at(c), sum, 1e-4);
    EXPECT_NEAR(sums.at(channels_ + c), squares, 1e-4 * squares);
  }
}

TEST_P(NormReluRows, MapAddAndCutOff) {
  Floats y(x_.size(), -1);
  norm_relu_rows<float>(x_.data(), channels_, map(), nullptr, 1, kRows, y.data());
  EXPECT_EQ(y.at(0), -1);  // not in the range
  for (int64_t row = 1; row < kRows; ++row) {
    for (int64_t c = 0; c < channels_; ++c) {
      EXPECT_NEAR(y.at(row * channels_ + c), std::max(z(row, c), 0.0F), 1e-5);
    }
  }
  norm_relu_rows(x_.data(), channels_, map(), added_.data(), 0, kRows, y.data());
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t c = 0; c < channels_; ++c) {
      const auto i = row * channels_ + c;
      EXPECT_NEAR(y.at(i), std::max(z(row, c) + added_.at(i), 0.0F), 1e-5);
    }
  }
}

TEST_P(NormReluRows, KeepNan) {
  Floats x(channels_, -1);
  x.at(0) = std::numeric_limits<float>::quiet_NaN();
  const Floats ones(channels_, 1);
  const Floats zeros(channels_, 0);
  Floats y(channels_, -1);
  norm_relu_rows<float>(x.data(), channels_, {.scale = ones.data(), .offset = zeros.data()},
                        nullptr, 0, 1, y.data());
  EXPECT_TRUE(std::isnan(y.at(0)));
  EXPECT_EQ(y.at(1), 0);
}

TEST_P(NormReluRows, SumGradientsOfWhatWasPositive) {
  for (const bool is_added : {false, true}) {
    Floats y(x_.size());
    norm_relu_rows<float>(x_.data(), channels_, map(), is_added ? added_.data() : nullptr, 0, kRows,
                          y.data());
    const NormReluGradient<float> rows{.x = x_.data(),
                                       .gradient = gradient_.data(),
                                       .y = is_added ? y.data() : nullptr,
                                       .channels = channels_,
                                       .map = map(),
                                       .mean = mean_.data()};
    Floats masked(x_.size(), -7);
    auto* mask = is_added ? masked.data() : nullptr;
    Doubles sums(2 * channels_);
    gradient_sums_of_rows<float>(rows, 0, kRows, mask, sums.data());
    const Floats a = drawn(channels_, 7);
    const Floats b = drawn(channels_, 8);
    const Floats k = drawn(channels_, 9);
    Floats result(x_.size());
    gradient_rows<float>(rows, {.of_gradient = a.data(), .of_x = b.data(), .constant = k.data()},
                         mask, 0, kRows, result.data());
    for (int64_t c = 0; c < channels_; ++c) {
      double sum = 0;
      double products = 0;
      for (int64_t row = 0; row < kRows; ++row) {
        const auto i = row * channels_ + c;
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
      EXPECT_NEAR(sums.at(channels_ + c), products, 1e-3);
    }
  }
}

using Bf16s = std::vector<Bf16>;

Bf16s rounded(const Floats& values) {
  Bf16s result(values.size());
  for (size_t i = 0; i < values.size(); ++i) put(values[i], result[i]);
  return result;
}

Floats floats(const Bf16s& values) {
  Floats result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = number(values[i]);
  return result;
}

// Off by its own rounding and by that of float32 on the way.
void expect_rounded(const Bf16s& ours, const Floats& exact) {
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_NEAR(number(ours[i]), exact[i], 0x1p-8 * std::abs(exact[i]) + 1e-5) << i;
  }
}

// Kernels of bfloat16 compute what those of float do from the same numbers, and round it.
TEST_P(NormReluRows, OfBfloat16AreThoseOfFloatRounded) {
  const auto x = rounded(x_);
  const auto gradient = rounded(gradient_);
  const auto added = rounded(added_);
  const auto wide_x = floats(x);
  const auto wide_gradient = floats(gradient);
  const auto wide_added = floats(added);
  const auto expect_equal_sums = [](const Doubles& ours, const Doubles& expected) {
    for (size_t i = 0; i < ours.size(); ++i) ASSERT_NEAR(ours[i], expected[i], 1e-4) << i;
  };
  Doubles sums(2 * channels_);
  Doubles expected_sums(2 * channels_);
  moments_of_rows(x.data(), channels_, mean_.data(), 3, kRows, sums.data());
  moments_of_rows(wide_x.data(), channels_, mean_.data(), 3, kRows, expected_sums.data());
  expect_equal_sums(sums, expected_sums);
  for (const bool is_added : {false, true}) {
    Bf16s y(x.size());
    norm_relu_rows<Bf16>(x.data(), channels_, map(), is_added ? added.data() : nullptr, 0, kRows,
                         y.data());
    Floats wide_y(x.size());
    norm_relu_rows<float>(wide_x.data(), channels_, map(), is_added ? wide_added.data() : nullptr,
                          0, kRows, wide_y.data());
    expect_rounded(y, wide_y);
    const NormReluGradient<Bf16> rows{.x = x.data(),
                                      .gradient = gradient.data(),
                                      .y = is_added ? y.data() : nullptr,
                                      .channels = channels_,
                                      .map = map(),
                                      .mean = mean_.data()};
    const NormReluGradient<float> wide_rows{.x = wide_x.data(),
                                            .gradient = wide_gradient.data(),
                                            .y = is_added ? wide_y.data() : nullptr,
                                            .channels = channels_,
                                            .map = map(),
                                            .mean = mean_.data()};
    Bf16s masked(x.size());
    Floats wide_masked(x.size());
    auto* mask = is_added ? masked.data() : nullptr;
    auto* wide_mask = is_added ? wide_masked.data() : nullptr;
    gradient_sums_of_rows<Bf16>(rows, 0, kRows, mask, sums.data());
    gradient_sums_of_rows<float>(wide_rows, 0, kRows, wide_mask, expected_sums.data());
    expect_equal_sums(sums, expected_sums);
    EXPECT_EQ(floats(masked), wide_masked);
    const GradientMap by{
        .of_gradient = scale_.data(), .of_x = offset_.data(), .constant = mean_.data()};
    Bf16s result(x.size());
    Floats wide_result(x.size());
    gradient_rows<Bf16>(rows, by, mask, 0, kRows, result.data());
    gradient_rows<float>(wide_rows, by, wide_mask, 0, kRows, wide_result.data());
    expect_rounded(result, wide_result);
  }
}

INSTANTIATE_TEST_SUITE_P(Channels, NormReluRows, testing::Values(5, 16, 32));

}  // namespace kelvin::batch_norm_rows_test
