#include "kelvin/kernels/gelu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>
#include <vector>

namespace kelvin::gelu_test {

double below(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double slope(double x) {
  return below(x) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
}

template <class Number>
Number rounded(double value) {
  Number result{};
  put(static_cast<float>(value), result);
  return result;
}

template <class Number>
double value_of(Number value) {
  return static_cast<double>(number(value));
}

// From -10 to 10 in steps that no vector divides.
template <class Number>
std::vector<Number> inputs(int64_t count) {
  std::vector<Number> x;
  x.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) x.push_back(rounded<Number>(std::remainder(0.37 * i, 20)));
  return x;
}

template <class Number>
class GeluKernels : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_gelu_kernels()) GTEST_SKIP() << "no vectors for it";
  }
  // Half a unit of the last place.
  static constexpr double kRounding = std::is_same_v<Number, float> ? 0x1p-24 : 0x1p-8;
};
using NumberTypes = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(GeluKernels, NumberTypes);

TYPED_TEST(GeluKernels, AreRightForAnyCountAndTouchNothingBehindIt) {
  using Number = TypeParam;
  for (int64_t count = 0; count <= 35; ++count) {
    const auto x = inputs<Number>(count);
    const auto g = rounded<Number>(-1.5);
    const std::vector<Number> gradient(static_cast<size_t>(count), g);
    std::vector<Number> y(static_cast<size_t>(count) + 16, rounded<Number>(99));
    auto back = y;
    gelu_numbers(x.data(), count, y.data());
    gelu_gradient(x.data(), gradient.data(), count, back.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const auto at = value_of(x[i]);
      const auto exact = at * below(at);
      EXPECT_NEAR(value_of(y[i]), exact, 4e-7 * std::abs(at) + this->kRounding * std::abs(exact));
      const auto steep = -1.5 * slope(at);
      EXPECT_NEAR(value_of(back[i]), steep, 2e-6 + this->kRounding * std::abs(steep));
    }
    for (auto i = x.size(); i < y.size(); ++i) {
      EXPECT_EQ(value_of(y[i]), 99);
      EXPECT_EQ(value_of(back[i]), 99);
    }
  }
}

TYPED_TEST(GeluKernels, GiveANumberTheSameBitsAloneAndAmongOthers) {
  using Number = TypeParam;
  constexpr int64_t kCount = 53;
  const auto x = inputs<Number>(kCount);
  std::vector<Number> y(x.size());
  std::vector<Number> back(x.size());
  gelu_numbers(x.data(), kCount, y.data());
  gelu_gradient(x.data(), x.data(), kCount, back.data());
  for (size_t i = 0; i < x.size(); ++i) {
    Number alone{};
    gelu_numbers(&x[i], 1, &alone);
    EXPECT_EQ(number(alone), number(y[i]));
    gelu_gradient(&x[i], &x[i], 1, &alone);
    EXPECT_EQ(number(alone), number(back[i]));
  }
}

TEST(GeluKernels, AreRightForEveryFiniteBfloat16) {
  if (!has_gelu_kernels()) GTEST_SKIP() << "no vectors for it";
  std::vector<Bf16> x;
  for (uint32_t bits = 0; bits < 1U << 16; ++bits) {
    const Bf16 value{static_cast<uint16_t>(bits)};
    if (std::isfinite(number(value))) x.push_back(value);
  }
  const auto count = static_cast<int64_t>(x.size());
  const std::vector<Bf16> ones(x.size(), rounded<Bf16>(1));
  std::vector<Bf16> y(x.size());
  std::vector<Bf16> back(x.size());
  gelu_numbers(x.data(), count, y.data());
  gelu_gradient(x.data(), ones.data(), count, back.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const auto at = value_of(x[i]);
    const auto exact = at * below(at);
    constexpr double kSmallest = 0x1p-126;  // what is not normal may become zero
    ASSERT_NEAR(value_of(y[i]), exact, 4e-7 * std::abs(at) + 0x1p-8 * std::abs(exact) + kSmallest);
    const auto steep = slope(at);
    ASSERT_NEAR(value_of(back[i]), steep, 2e-6 + 0x1p-8 * std::abs(steep)) << at;
  }
}

}  // namespace kelvin::gelu_test
