#include "kelvin/numerics/class_means.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::class_means_test {

TEST(AddClassSums, AddsWhatIsThere) {
  for (const int64_t dims : {1, 511, 512, 1300}) {
    const auto rows = noise({40, dims}, 1).to(torch::kFloat32);
    const auto labels = torch::arange(40).remainder(3);
    auto sums = torch::ones({4, dims}, torch::kFloat64);
    add_class_sums(rows, labels, sums);
    const auto expected =
        torch::ones({4, dims}, torch::kFloat64).index_add(0, labels, rows.to(torch::kFloat64));
    expect_close(sums, expected, 1e-12);
  }
}

TEST(AddClassSums, TakesRowsInAnyOrderInMemoryAndNone) {
  const auto rows = noise({5, 6}, 1).to(torch::kFloat32);
  auto sums = torch::zeros({1, 5}, torch::kFloat64);
  add_class_sums(rows.t(), torch::zeros({6}, torch::kInt64), sums);
  expect_close(sums[0], rows.to(torch::kFloat64).sum(1), 1e-12);
  add_class_sums(torch::zeros({0, 5}), torch::zeros({0}, torch::kInt64), sums);
  expect_close(sums[0], rows.to(torch::kFloat64).sum(1), 1e-12);
}

TEST(AddClassSums, KeepsAllDigitsOfDoubles) {
  const auto rows = noise({9, 4}, 1);
  auto sums = torch::zeros({1, 4}, torch::kFloat64);
  add_class_sums(rows, torch::zeros({9}, torch::kInt64), sums);
  expect_close(sums[0], rows.sum(0), 1e-14);
}

TEST(AddClassSums, RejectsWhatDoesNotFit) {
  auto sums = torch::zeros({2, 3}, torch::kFloat64);
  auto view = torch::zeros({3, 2}, torch::kFloat64).t();
  EXPECT_EQ(error_of([&] {
              add_class_sums(torch::zeros({1, 3}), torch::zeros({1}, torch::kInt64), view);
            }),
            "add_class_sums: sums must be float64 and contiguous");
  EXPECT_EQ(error_of([&] {
              add_class_sums(torch::zeros({1, 3}), torch::full({1}, 2, torch::kInt64), sums);
            }),
            "add_class_sums: labels must be in [0, 2)");
  EXPECT_EQ(error_of([&] {
              add_class_sums(torch::zeros({1, 4}), torch::zeros({1}, torch::kInt64), sums);
            }),
            "add_class_sums: rows and labels must be [rows, 3] and [rows], got [1, 4] and [1]");
}

TEST(ClassMeans, LeaveOutClassesWithoutSamples) {
  const auto features = doubles({1, 2, 3, 4, 5, 9}).view({3, 2});
  const auto found = class_means(features, labels_of({3, 1, 3}), 5);
  expect_close(found.means, doubles({3, 4, 3, 5.5}).view({2, 2}), 1e-15);
  expect_close(found.counts, doubles({1, 2}), 0);
  EXPECT_TRUE(torch::equal(found.places, labels_of({1, 0, 1})));
  expect_close(found.mean, doubles({3, 5}), 1e-15);
}

TEST(ClassMeans, OfFloatsAreSummedInDoublePrecision) {
  const auto features = (noise({1000, 3}, 0) + 1e4).to(torch::kFloat32);
  const auto labels = torch::arange(1000) % 2;
  const auto found = class_means(features, labels, 2);
  const auto wide = features.to(torch::kFloat64);
  EXPECT_EQ(found.means.scalar_type(), torch::kFloat64);
  expect_close(found.means[0], wide.index_select(0, torch::arange(0, 1000, 2)).mean(0), 1e-9);
  expect_close(found.mean, wide.mean(0), 1e-9);
}

TEST(ClassMeans, RejectNoSamples) {
  EXPECT_EQ(error_of([] {
              class_means(torch::zeros({0, 2}), labels_of({}), 3);
            }),
            "class_means: features must be [samples, dims] of at least 1 sample and 1 class, got "
            "[0, 2] and 3 classes");
}

ClassVariance variance_of(const torch::Tensor& rows, const torch::Tensor& labels, int64_t classes,
                          int64_t sketch = 2048) {
  ClassVariance variance(FeatureSketch(rows.size(1), sketch, 7), classes);
  variance.update(rows, labels);
  return variance;
}

// Classes of different size around means of their own, far from 0.
torch::Tensor labels_for(int64_t samples, int64_t classes) {
  return (torch::arange(samples) * torch::arange(samples)) % classes;
}

torch::Tensor clusters(const torch::Tensor& labels, int64_t classes, int64_t dims) {
  const auto means = noise({classes, dims}, 1);
  const auto rows = means.index_select(0, labels) + 0.7 * noise({labels.size(0), dims}, 2) + 3;
  return rows.to(torch::kFloat32);
}

const char* const kOracle = R"(
r, l = x["rows"].astype(float), x["labels"]
m = r.mean(0)
b = sum(np.sum(l == c) * np.sum((r[l == c].mean(0) - m)**2) for c in np.unique(l)) / len(r)
w = sum(np.sum((r[l == c] - r[l == c].mean(0))**2) for c in np.unique(l)) / len(r)
out["between"], out["within"], out["total"] = np.array([b]), np.array([w]), np.array([r.var(0).sum()])
)";

TEST(ClassVariance, OfFourPointsIsKnownOnPaper) {
  const auto rows = torch::tensor({{1.F, 0.F}, {3.F, 0.F}, {-2.F, 1.F}, {-2.F, -1.F}});
  const auto [between, within] = variance_of(rows, labels_of({0, 0, 1, 1}), 2).parts();
  EXPECT_DOUBLE_EQ(between, 4);
  EXPECT_DOUBLE_EQ(within, 1);
}

TEST(ClassVariance, IsThatOfNumPyAndAddsUp) {
  const auto labels = labels_for(90, 7);
  const auto rows = clusters(labels, 7, 40);
  const auto expected = oracle(kOracle, {{"rows", rows}, {"labels", labels}});
  const auto variance = variance_of(rows, labels, 9);  // two classes do not occur
  const auto [between, within] = variance.parts();
  EXPECT_NEAR(between / expected.at("between").item<double>(), 1, 1e-10);
  EXPECT_NEAR(within / expected.at("within").item<double>(), 1, 1e-10);
  EXPECT_NEAR((between + within) / expected.at("total").item<double>(), 1, 1e-10);
  EXPECT_FALSE(variance.is_estimated());
}

TEST(ClassVariance, OfWideFeaturesAddsUpExactlyAndIsDividedNearlyRight) {
  const auto labels = labels_for(90, 7);
  const auto rows = clusters(labels, 7, 6000);
  const auto expected = oracle(kOracle, {{"rows", rows}, {"labels", labels}});
  const auto variance = variance_of(rows, labels, 7, /*sketch=*/1024);
  const auto [between, within] = variance.parts();
  EXPECT_TRUE(variance.is_estimated());
  EXPECT_EQ(variance.width(), 1024);
  EXPECT_NEAR((between + within) / expected.at("total").item<double>(), 1, 1e-6);
  const double error = std::sqrt(2.0 / 1024);
  EXPECT_NEAR(between / expected.at("between").item<double>(), 1, 3 * error);
  EXPECT_NEAR(within / expected.at("within").item<double>(), 1, 3 * error);
}

TEST(ClassVariance, OfWideCollapsedClassesStaysAboveZero) {
  const auto labels = labels_for(60, 5);
  const auto means = noise({5, 3000}, 3).index_select(0, labels);
  const auto rows = (means + 1e-2 * noise({60, 3000}, 4)).to(torch::kFloat32);
  const auto [between, within] = variance_of(rows, labels, 5, /*sketch=*/256).parts();
  const auto expected = oracle(kOracle, {{"rows", rows}, {"labels", labels}});
  EXPECT_NEAR(within / expected.at("within").item<double>(), 1, 3 * std::sqrt(2.0 / 256));
  EXPECT_GT(between, 1000 * within);
}

TEST(ClassVariance, IgnoresRotationsShiftsOrderAndBatches) {
  const auto labels = labels_for(50, 4);
  const auto rows = clusters(labels, 4, 12);
  const auto [between, within] = variance_of(rows, labels, 4).parts();
  const auto rotation = std::get<0>(torch::linalg_qr(noise({12, 12}, 5)));
  const auto order = torch::arange(49, -1, -1);
  auto split = variance_of(rows.slice(0, 0, 13), labels.slice(0, 0, 13), 4);
  const auto rest = variance_of(rows.slice(0, 13), labels.slice(0, 13), 4);
  split.merge(rest);
  for (const auto& other :
       {variance_of(rows.to(torch::kFloat64).matmul(rotation).to(torch::kFloat32), labels, 4),
        variance_of(rows + 10, labels, 4), variance_of(2 * rows, labels, 4),
        variance_of(rows.index_select(0, order), labels.index_select(0, order), 4), split}) {
    const auto parts = other.parts();
    const double scale = parts.between > 2 * between ? 4 : 1;  // of the doubled rows
    EXPECT_NEAR(parts.between / scale / between, 1, 1e-5);
    EXPECT_NEAR(parts.within / scale / within, 1, 1e-5);
  }
  EXPECT_EQ(rest.samples(), 37);
  EXPECT_EQ(split.samples(), 50);
}

TEST(ClassVariance, LeavesCopiesAlone) {
  auto variance = variance_of(torch::ones({2, 3}), labels_of({0, 1}), 2);
  const auto copy = variance;
  variance.update(torch::ones({2, 3}), labels_of({0, 1}));
  expect_close(copy.class_counts(), doubles({1, 1}), 0);
  expect_close(copy.class_sums(), torch::ones({2, 3}), 0);
  expect_close(variance.class_counts(), doubles({2, 2}), 0);
}

TEST(ClassVariance, OfOneClassOrEqualRowsHasNoneBetween) {
  const auto one =
      variance_of(noise({20, 5}, 6).to(torch::kFloat32), torch::ones({20}, torch::kInt64), 3);
  EXPECT_EQ(one.parts().between, 0);
  EXPECT_GT(one.parts().within, 1);
  for (const int64_t sketch : {4, 100}) {
    const auto zero = variance_of(torch::zeros({20, 9}), labels_for(20, 3), 3, sketch).parts();
    EXPECT_EQ(zero.between, 0);
    EXPECT_EQ(zero.within, 0);
    const auto equal =
        variance_of(torch::full({20, 9}, 0.3F), labels_for(20, 3), 3, sketch).parts();
    EXPECT_EQ(equal.between, 0);
    EXPECT_NEAR(equal.within, 0, 1e-14);
  }
}

TEST(ClassVariance, KnowsWhatItHolds) {
  EXPECT_EQ(ClassVariance::bytes(5, 5, 3), (3 * 6 + 2 * 5) * 8);
  EXPECT_EQ(ClassVariance::bytes(100, 20, 3), (3 * 21 + 2 * 120) * 8);
}

TEST(ClassVariance, RejectsWhatDoesNotFit) {
  EXPECT_EQ(error_of([] { ClassVariance(FeatureSketch(3, 3, 0), 0); }),
            "ClassVariance: classes must be above 0, got 0");
  ClassVariance variance(FeatureSketch(3, 3, 0), 2);
  EXPECT_EQ(error_of([&] {
              variance.update(torch::zeros({2, 3}), labels_of({0}));
            }),
            "ClassVariance: rows and labels must be [rows, dims] and [rows], got [2, 3] and [1]");
  EXPECT_EQ(error_of([&] { variance.merge(ClassVariance(FeatureSketch(3, 3, 0), 4)); }),
            "ClassVariance: can merge only one with the same sketch and classes");
}

}  // namespace kelvin::class_means_test
