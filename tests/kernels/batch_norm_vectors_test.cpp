#include "kelvin/kernels/batch_norm_vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "kelvin/kernels/instruction_sets.h"
#include "tests/support/errors.h"

namespace kelvin::batch_norm_vectors_test {

using Doubles = std::vector<double>;

template <class Number>
std::vector<Number> drawn(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<Number> values(static_cast<size_t>(count));
  for (auto& value : values) put(normal(generator), value);
  return values;
}

template <class Number>
double value_of(Number value) {
  return static_cast<double>(number(value));
}

// One row, odd and even ones, as many as are summed at once and one less and more, and several such
// sums; one, two and three vectors of channels.
constexpr int64_t kRowCounts[] = {1, 2, 3, 63, 64, 65, 131};
constexpr int64_t kChannelCounts[] = {16, 32, 48};
constexpr int64_t kBefore = 2;  // rows in front of those that are asked for

template <class Pixel>
class NormReluVectors : public testing::Test {
 protected:
  void SetUp() override {
    if (!suits_norm_relu_vectors(16)) GTEST_SKIP() << "no vectors for it";
  }

  struct Data {
    Data(int64_t row_count, int64_t channel_count)
        : rows(row_count), channels(channel_count), end(kBefore + rows) {}

    size_t place(int64_t row, int64_t channel) const {
      return static_cast<size_t>(row * channels + channel);
    }
    double mapped(int64_t row, int64_t c) const {
      return value_of(x[place(row, c)]) * value_of(scale[c]) + value_of(offset[c]);
    }
    ChannelMap map() const { return {.scale = scale.data(), .offset = offset.data()}; }

    int64_t rows;
    int64_t channels;
    int64_t end;
    std::vector<Pixel> x = drawn<Pixel>(end * channels, 1);
    std::vector<Pixel> gradient = drawn<Pixel>(end * channels, 2);
    std::vector<Pixel> added = drawn<Pixel>(end * channels, 3);
    std::vector<float> scale = drawn<float>(channels, 4);
    std::vector<float> offset = drawn<float>(channels, 5);
    std::vector<float> mean = drawn<float>(channels, 6);
  };

  template <class Claim>
  static void for_sizes(const Claim& claim) {
    for (const auto rows : kRowCounts) {
      for (const auto channels : kChannelCounts) {
        SCOPED_TRACE(testing::Message() << rows << " rows of " << channels);
        claim(Data(rows, channels));
      }
    }
  }

  // A result is off by its own rounding and by that of float32 on the way.
  static double rounding(double exact) {
    return 2e-6 + (std::is_same_v<Pixel, float> ? 0x1p-24 : 0x1p-8) * std::abs(exact);
  }
};
using PixelTypes = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(NormReluVectors, PixelTypes);

TYPED_TEST(NormReluVectors, SumMomentsAboutAShift) {
  this->for_sizes([](const auto& data) {
    Doubles sums(2 * data.channels, 99);
    moments_of_vectors(data.x.data(), data.channels, data.mean.data(), kBefore, data.end,
                       sums.data());
    for (int64_t c = 0; c < data.channels; ++c) {
      double sum = 0;
      double squares = 0;
      for (auto row = kBefore; row < data.end; ++row) {
        const auto distance = value_of(data.x[data.place(row, c)]) - value_of(data.mean[c]);
        sum += distance;
        squares += distance * distance;
      }
      ASSERT_NEAR(sums[c], sum, 1e-4);
      ASSERT_NEAR(sums[data.channels + c], squares, 1e-5 * squares);
    }
  });
}

TYPED_TEST(NormReluVectors, MapAddAndCutOff) {
  this->for_sizes([](const auto& data) {
    using Pixel = TypeParam;
    for (const bool is_added : {false, true}) {
      std::vector<Pixel> y(data.x.size(), Pixel{});
      put(-1, y.at(0));
      norm_relu_vectors<Pixel>(data.x.data(), data.channels, data.map(),
                               is_added ? data.added.data() : nullptr, kBefore, data.end, y.data());
      EXPECT_EQ(number(y.at(0)), -1);  // not in the range
      for (auto row = kBefore; row < data.end; ++row) {
        for (int64_t c = 0; c < data.channels; ++c) {
          const auto i = data.place(row, c);
          const auto exact =
              std::max(data.mapped(row, c) + (is_added ? value_of(data.added[i]) : 0.0), 0.0);
          ASSERT_NEAR(value_of(y[i]), exact, TestFixture::rounding(exact));
        }
      }
    }
  });
}

TYPED_TEST(NormReluVectors, SumAndMapGradientsOfWhatWasPositive) {
  this->for_sizes([](const auto& data) {
    using Pixel = TypeParam;
    const auto channels = data.channels;
    const auto a = drawn<float>(channels, 7);
    const auto b = drawn<float>(channels, 8);
    const auto k = drawn<float>(channels, 9);
    for (const bool is_added : {false, true}) {
      std::vector<Pixel> y(data.x.size());
      norm_relu_vectors<Pixel>(data.x.data(), channels, data.map(),
                               is_added ? data.added.data() : nullptr, kBefore, data.end, y.data());
      const NormReluGradient<Pixel> rows{.x = data.x.data(),
                                         .gradient = data.gradient.data(),
                                         .y = is_added ? y.data() : nullptr,
                                         .channels = channels,
                                         .map = data.map(),
                                         .mean = data.mean.data()};
      std::vector<Pixel> masked(data.x.size());
      auto* mask = is_added ? masked.data() : nullptr;
      Doubles sums(2 * channels, 99);
      gradient_sums_of_vectors(rows, kBefore, data.end, mask, sums.data());
      std::vector<Pixel> result(data.x.size());
      gradient_vectors<Pixel>(rows,
                              {.of_gradient = a.data(), .of_x = b.data(), .constant = k.data()},
                              mask, kBefore, data.end, result.data());
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        double products = 0;
        for (auto row = kBefore; row < data.end; ++row) {
          const auto i = data.place(row, c);
          const auto g = number(y[i]) > 0 ? value_of(data.gradient[i]) : 0.0;
          const auto distance = value_of(data.x[i]) - value_of(data.mean[c]);
          sum += g;
          products += g * distance;
          ASSERT_EQ(value_of(masked[i]), is_added ? g : 0);
          const auto exact = g * value_of(a[c]) + distance * value_of(b[c]) + value_of(k[c]);
          ASSERT_NEAR(value_of(result[i]), exact, TestFixture::rounding(exact));
        }
        ASSERT_NEAR(sums[c], sum, 1e-4);
        ASSERT_NEAR(sums[channels + c], products, 1e-4);
      }
    }
  });
}

// Where scale x + offset is 0 but for rounding, one more rounding would make it the other sign.
TYPED_TEST(NormReluVectors, AgreeForwardAndBackwardOnWhatIsPositive) {
  using Pixel = TypeParam;
  typename TestFixture::Data data(64, 32);
  for (int64_t c = 0; c < data.channels; ++c) {
    const auto first = data.x[data.place(0, c)];
    for (auto row = kBefore; row < data.end; ++row) data.x[data.place(row, c)] = first;
    data.offset[c] = -number(first) * data.scale[c];
  }
  std::vector<Pixel> y(data.x.size());
  norm_relu_vectors<Pixel>(data.x.data(), data.channels, data.map(), nullptr, kBefore, data.end,
                           y.data());
  std::vector<Pixel> ones(data.x.size());
  for (auto& one : ones) put(1, one);
  Doubles sums(2 * data.channels);
  gradient_sums_of_vectors<Pixel>({.x = data.x.data(),
                                   .gradient = ones.data(),
                                   .channels = data.channels,
                                   .map = data.map(),
                                   .mean = data.mean.data()},
                                  kBefore, data.end, nullptr, sums.data());
  for (int64_t c = 0; c < data.channels; ++c) {
    const bool is_positive = number(y[data.place(kBefore, c)]) > 0;
    EXPECT_EQ(sums[c], is_positive ? data.rows : 0);
  }
}

TYPED_TEST(NormReluVectors, KeepNan) {
  using Pixel = TypeParam;
  typename TestFixture::Data data(1, 16);
  put(std::numeric_limits<float>::quiet_NaN(), data.x[data.place(kBefore, 3)]);
  std::vector<Pixel> y(data.x.size());
  norm_relu_vectors<Pixel>(data.x.data(), 16, data.map(), nullptr, kBefore, data.end, y.data());
  for (int64_t c = 0; c < 16; ++c) {
    EXPECT_EQ(std::isnan(number(y[data.place(kBefore, c)])), c == 3);
  }
}

TEST(NormReluVectors, AreForMultiplesOfSixteenChannels) {
  for (const int64_t channels : {1, 8, 17, 40}) EXPECT_FALSE(suits_norm_relu_vectors(channels));
}

TEST(MissingKernel, SaysSo) {
  EXPECT_EQ(error_of([] { missing_kernel(); }),
            "kelvin/kernels: a kernel was called that this processor has no instructions for");
}

}  // namespace kelvin::batch_norm_vectors_test
