#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kelvin/kernels/adaptive_softmax.h"
#include "tests/support/adaptive_rows.h"

namespace kelvin::adaptive_softmax_gradient_test {

constexpr float kUntouched = 77;

struct Case {
  int64_t rows = 0;
  int64_t columns = 0;
  double temperature = 1;
  bool has_slope = true;
};

// Forward and backward by the kernels.
template <class Number>
std::vector<Number> kernel_gradient(const Case& of, const std::vector<Number>& logits,
                                    const std::vector<Number>& incoming, InstructionSet set,
                                    int64_t begin = 0, int64_t end = -1) {
  std::vector<Number> result(logits.size());
  std::vector<float> facts(static_cast<size_t>(6 * of.rows));
  const auto fact = [&](int64_t which) { return facts.data() + which * of.rows; };
  adaptive_softmax_rows<Number>({.logits = logits.data(),
                                 .rows = of.rows,
                                 .columns = of.columns,
                                 .inverse_temperature = 1 / of.temperature,
                                 .curve = published_curve(),
                                 .result = result.data(),
                                 .numbers = {.beta = fact(0),
                                             .top_weight = fact(1),
                                             .largest = fact(2),
                                             .sum = fact(3),
                                             .mean = fact(4),
                                             .slope = fact(5)}},
                                0, of.rows, set);
  Number untouched;
  put(kUntouched, untouched);
  result.assign(logits.size() + 40, untouched);
  adaptive_softmax_gradient<Number>({.logits = logits.data(),
                                     .gradient = incoming.data(),
                                     .rows = of.rows,
                                     .columns = of.columns,
                                     .inverse_temperature = 1 / of.temperature,
                                     .beta = fact(0),
                                     .top_weight = fact(1),
                                     .largest = fact(2),
                                     .sum = fact(3),
                                     .mean = fact(4),
                                     .slope = of.has_slope ? fact(5) : nullptr,
                                     .result = result.data()},
                                    begin, end < 0 ? of.rows : end, set);
  return result;
}

double loss_of(const std::vector<double>& row, const std::vector<double>& incoming,
               double temperature) {
  const auto exact = exact_row(row, 1 / temperature);
  double loss = 0;
  for (size_t i = 0; i < row.size(); ++i) loss += exact.result[i] * incoming[i];
  return loss;
}

// The product of the incoming gradient and the Jacobian of the definition, in double precision.
std::vector<double> exact_gradient(const std::vector<double>& row,
                                   const std::vector<double>& incoming, double temperature,
                                   bool has_slope) {
  const auto exact = exact_row(row, 1 / temperature, has_slope);
  const size_t n = row.size();
  const double top = *std::max_element(row.begin(), row.end());
  std::vector<double> p(n), z(n), gradient(n);
  double sum = 0, mean = 0, of_result = 0, of_beta = 0;
  for (size_t i = 0; i < n; ++i) {
    z[i] = (row[i] - top) / temperature;
    p[i] = std::exp(z[i]);
    sum += p[i];
    of_result += exact.result[i] * incoming[i];
  }
  for (size_t i = 0; i < n; ++i) {
    p[i] /= sum;
    if (p[i] > 0) mean += p[i] * z[i];
    if (p[i] > 0) of_beta += exact.result[i] * (incoming[i] - of_result) * z[i];
  }
  for (size_t i = 0; i < n; ++i) {
    if (p[i] == 0) continue;
    const double entropy_slope = -p[i] * (z[i] - mean);
    gradient[i] = (exact.beta * exact.result[i] * (incoming[i] - of_result) +
                   of_beta * exact.slope * entropy_slope) /
                  temperature;
  }
  return gradient;
}

std::vector<double> row_of(const std::vector<float>& numbers, int64_t columns, int64_t row) {
  return {numbers.begin() + row * columns, numbers.begin() + (row + 1) * columns};
}

TEST(ExactGradient, IsThatOfCentralDifferences) {
  const auto numbers = random_floats(12, 1, 1);
  const auto incoming = row_of(random_floats(12, 1, 2), 12, 0);
  for (const double temperature : {0.7, 1.0, 2.0}) {
    auto row = row_of(numbers, 12, 0);
    const auto gradient = exact_gradient(row, incoming, temperature, true);
    for (size_t i = 0; i < row.size(); ++i) {
      constexpr double kStep = 1e-5;
      const double x = row[i];
      row[i] = x + kStep;
      const double above = loss_of(row, incoming, temperature);
      row[i] = x - kStep;
      const double below = loss_of(row, incoming, temperature);
      row[i] = x;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-8);
    }
  }
}

class AdaptiveSoftmaxGradientKernel : public testing::TestWithParam<InstructionSet> {};

void expect_exact_gradient(const Case& of, InstructionSet set) {
  const auto logits = random_floats(of.rows * of.columns, 1.5, 3);
  const auto incoming = random_floats(of.rows * of.columns, 1, 4);
  const auto found = kernel_gradient(of, logits, incoming, set);
  for (int64_t row = 0; row < of.rows; ++row) {
    const auto exact =
        exact_gradient(row_of(logits, of.columns, row), row_of(incoming, of.columns, row),
                       of.temperature, of.has_slope);
    for (size_t i = 0; i < exact.size(); ++i) {
      const auto place = static_cast<size_t>(row * of.columns) + i;
      ASSERT_NEAR(found[place], exact[i], 4e-6) << of.columns << " at " << i;
    }
  }
}

TEST_P(AdaptiveSoftmaxGradientKernel, IsExactForRowsOfAnyLength) {
  for (const int64_t columns : {1, 2, 3, 5, 8, 15, 16, 17, 33, 100, 2047, 2048, 2049, 20000}) {
    for (const bool has_slope : {true, false}) {
      for (const double temperature : {1.0, 0.5}) {
        expect_exact_gradient({.rows = columns < 200 ? 19 : 2,
                               .columns = columns,
                               .temperature = temperature,
                               .has_slope = has_slope},
                              GetParam());
      }
    }
  }
}

TEST_P(AdaptiveSoftmaxGradientKernel, OfMaskedLogitsIsNothing) {
  const Case of{.rows = 6, .columns = 21};
  auto logits = random_floats(126, 1, 5);
  for (size_t i = 0; i < logits.size(); ++i) {
    if (i % 4 == 1 || i / 21 == 2) logits[i] = -std::numeric_limits<float>::infinity();
  }
  const auto incoming = random_floats(126, 1, 6);
  const auto found = kernel_gradient(of, logits, incoming, GetParam());
  for (int64_t row = 0; row < of.rows; ++row) {
    if (row == 2) continue;
    const auto exact = exact_gradient(row_of(logits, 21, row), row_of(incoming, 21, row), 1, true);
    for (int64_t i = 0; i < 21; ++i) {
      EXPECT_NEAR(found[static_cast<size_t>(row * 21 + i)], exact[static_cast<size_t>(i)], 2e-6);
    }
  }
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isinf(logits[i])) {
      EXPECT_EQ(found[i], 0) << i;
    }
  }
}

TEST_P(AdaptiveSoftmaxGradientKernel, IsFiniteForTheLargestLogitsAndNanForNoNumbers) {
  const Case of{.rows = 3, .columns = 20};
  auto logits = random_floats(60, 1e30, 7);
  logits[25] = std::nanf("");
  const auto found = kernel_gradient(of, logits, random_floats(60, 1, 8), GetParam());
  for (size_t i = 0; i < 60; ++i) EXPECT_EQ(std::isnan(found[i]), i / 20 == 1) << i;
}

TEST_P(AdaptiveSoftmaxGradientKernel, WritesItsRowsOnly) {
  for (const int64_t columns : {1, 3, 16, 21}) {
    const Case of{.rows = 12, .columns = columns};
    const auto found = kernel_gradient(of, random_floats(12 * columns, 1, 9),
                                       random_floats(12 * columns, 1, 10), GetParam(), 2, 11);
    for (size_t i = 0; i < found.size(); ++i) {
      const auto row = static_cast<int64_t>(i) / columns;
      EXPECT_EQ(found[i] == kUntouched, row < 2 || row >= 11) << columns << " " << row;
    }
  }
}

TEST_P(AdaptiveSoftmaxGradientKernel, IsRoundedInBfloat16) {
  const Case of{.rows = 7, .columns = 50};
  auto logits = random_floats(350, 1, 11);
  auto incoming = random_floats(350, 1, 12);
  std::vector<Bf16> narrow(350), narrow_incoming(350);
  for (size_t i = 0; i < 350; ++i) {
    put(logits[i], narrow[i]);
    logits[i] = number(narrow[i]);
    put(incoming[i], narrow_incoming[i]);
    incoming[i] = number(narrow_incoming[i]);
  }
  const auto wide = kernel_gradient(of, logits, incoming, GetParam());
  const auto found = kernel_gradient(of, narrow, narrow_incoming, GetParam());
  for (size_t i = 0; i < wide.size(); ++i) {
    Bf16 expected;
    put(wide[i], expected);
    EXPECT_EQ(found[i].bits, expected.bits);
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, AdaptiveSoftmaxGradientKernel, testing::ValuesIn(instruction_sets()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace kelvin::adaptive_softmax_gradient_test
