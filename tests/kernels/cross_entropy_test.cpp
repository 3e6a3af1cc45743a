#include "kelvin/kernels/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace kelvin::cross_entropy_test {

template <class Scalar>
struct Rows {
  std::vector<Scalar> logits;
  std::vector<int64_t> labels;
  int64_t classes;
  double temperature = 1;
  std::vector<RowValues> values = {};
  std::vector<Scalar> gradient = {};

  void run() {
    values.resize(labels.size());
    gradient.resize(logits.size());
    cross_entropy_rows(CrossEntropyRows<Scalar>{.logits = logits.data(),
                                                .labels = labels.data(),
                                                .classes = classes,
                                                .temperature = temperature,
                                                .gradient = gradient.data(),
                                                .values = values.data()},
                       0, static_cast<int64_t>(labels.size()));
  }
};

// With two classes and the other one labelled, the gradient of class 1 is 1 / (1 + exp(-x)).
TEST(CrossEntropyRows, HasExponentialsOfSinglePrecision) {
  double worst = 0;
  for (int step = 1; step < 8700; ++step) {
    const float x = -0.01F * static_cast<float>(step);
    Rows<float> rows{.logits = {0, x}, .labels = {0}, .classes = 2};
    rows.run();
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(rows.gradient[1] * (1 + exact) / exact - 1));
  }
  EXPECT_LT(worst, 3 * std::ldexp(1, -23));
}

TEST(CrossEntropyRows, TakesVanishingExponentialsAsZero) {
  for (const float x : {-87.4F, -104.F, -1e4F, -1e30F, -3.4e38F}) {
    Rows<float> rows{.logits = {0, x}, .labels = {1}, .classes = 2};
    rows.run();
    EXPECT_EQ(rows.gradient[0], 1) << x;
    EXPECT_EQ(rows.gradient[1], -1) << x;
    EXPECT_EQ(rows.values[0].entropy, 0) << x;
    EXPECT_DOUBLE_EQ(rows.values[0].loss, -static_cast<double>(x)) << x;
  }
}

TEST(CrossEntropyRows, IsExactForTheLowestLogits) {
  // What fills up the last vector must not count among them.
  Rows<float> rows{
      .logits = {-3.4028235e38F, -3.4028235e38F, -3.4028235e38F}, .labels = {2}, .classes = 3};
  rows.run();
  EXPECT_NEAR(rows.values[0].loss, std::log(3), 1e-7);
  EXPECT_NEAR(rows.values[0].entropy, std::log(3), 1e-7);
}

TEST(CrossEntropyRows, GivesARowTheSameBitsWhereverItStands) {
  const int64_t classes = 37;
  std::vector<float> row;
  for (int64_t k = 0; k < classes; ++k) row.push_back(std::sin(static_cast<float>(k * k)));
  Rows<float> one{.logits = row, .labels = {4}, .classes = classes};
  one.run();
  Rows<float> three{.logits = row, .labels = {4, 4, 4}, .classes = classes};
  three.logits.insert(three.logits.end(), row.begin(), row.end());
  three.logits.insert(three.logits.end(), row.begin(), row.end());
  three.run();
  for (size_t sample = 0; sample < 3; ++sample) {
    EXPECT_EQ(three.values[sample].loss, one.values[0].loss);
    EXPECT_EQ(std::memcmp(three.gradient.data() + sample * row.size(), one.gradient.data(),
                          row.size() * sizeof(float)),
              0);
  }
}

TEST(CrossEntropyRows, GivesTheSameValuesWithoutAGradient) {
  Rows<double> rows{.logits = {1, 2, 3, -1, 0, 1}, .labels = {0, 2}, .classes = 3};
  rows.run();
  std::vector<RowValues> values(2);
  cross_entropy_rows(CrossEntropyRows<double>{.logits = rows.logits.data(),
                                              .labels = rows.labels.data(),
                                              .classes = 3,
                                              .values = values.data()},
                     0, 2);
  for (size_t sample = 0; sample < 2; ++sample) {
    EXPECT_EQ(values[sample].loss, rows.values[sample].loss);
    EXPECT_EQ(values[sample].entropy, rows.values[sample].entropy);
    EXPECT_EQ(values[sample].slope, rows.values[sample].slope);
    EXPECT_EQ(values[sample].prediction, 2);
  }
}

}  // namespace kelvin::cross_entropy_test
