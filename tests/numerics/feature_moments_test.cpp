#include "kelvin/numerics/feature_moments.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>

#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::feature_moments_test {

FeatureMoments moments_of(const torch::Tensor& rows) {
  FeatureMoments moments(rows.size(1));
  moments.update(rows);
  return moments;
}

TEST(FeatureMoments, OfAFewRowsAreKnownOnPaper) {
  const auto moments = moments_of(torch::tensor({{1.F, 2.F}, {3.F, 2.F}}));
  EXPECT_EQ(moments.rows(), 2);
  expect_close(moments.sums(), doubles({4, 4}), 0);
  expect_close(moments.squares(), doubles({10, 8}), 0);
  EXPECT_DOUBLE_EQ(moments.total_variance(), 1);
}

TEST(FeatureMoments, AreThoseOfNumPyInWholeAndPartBlocks) {
  for (const int64_t dims : {3, 512, 1300}) {
    // A mean a hundred times the deviation: float32 sums would lose the variance.
    const auto rows = (noise({70, dims}, 0) + 100).to(torch::kFloat32);
    const auto expected = oracle(R"(
r = x["rows"].astype(float)
out["sums"], out["squares"], out["variance"] = r.sum(0), (r * r).sum(0), np.array([r.var(0).sum()])
)",
                                 {{"rows", rows}});
    const auto moments = moments_of(rows);
    expect_close(moments.sums(), expected.at("sums"), 1e-8);
    expect_close(moments.squares(), expected.at("squares"), 1e-6);
    EXPECT_NEAR(moments.total_variance() / expected.at("variance").item<double>(), 1, 1e-10);
  }
}

TEST(FeatureMoments, GiveTheSameHoweverTheRowsAreSplitAndLaid) {
  const auto rows = noise({30, 600}, 1).to(torch::kFloat32);
  const auto whole = moments_of(rows);
  auto parts = moments_of(rows.slice(0, 0, 7));
  parts.update(rows.slice(0, 7, 12));
  const auto copy = parts;
  parts.merge(moments_of(rows.slice(0, 12)));
  EXPECT_EQ(parts.rows(), 30);
  expect_close(parts.sums(), whole.sums(), 1e-12);
  expect_close(parts.squares(), whole.squares(), 1e-12);
  EXPECT_EQ(copy.rows(), 12);
  expect_close(copy.sums(), moments_of(rows.slice(0, 0, 12)).sums(), 1e-12);
  expect_close(moments_of(rows.t().contiguous().t()).sums(), whole.sums(), 0);
}

TEST(FeatureMoments, LeaveCopiesAlone) {
  auto moments = moments_of(torch::ones({2, 3}));
  const auto copy = moments;
  moments.update(torch::ones({2, 3}));
  expect_close(copy.sums(), doubles({2, 2, 2}), 0);
  expect_close(moments.sums(), doubles({4, 4, 4}), 0);
}

TEST(FeatureMoments, OfConstantRowsHaveNoVariance) {
  EXPECT_EQ(moments_of(torch::zeros({9, 4})).total_variance(), 0);
  EXPECT_NEAR(moments_of(torch::full({9, 4}, 0.3F)).total_variance(), 0, 1e-15);
  EXPECT_EQ(moments_of(torch::full({1, 4}, 0.3F)).total_variance(), 0);
}

TEST(FeatureMoments, KnowOfAnythingThatIsNotFinite) {
  EXPECT_TRUE(moments_of(torch::full({2, 600}, 1e30F)).is_finite());
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (const int64_t column : {5, 599}) {
      auto rows = torch::zeros({2, 600});
      rows[1][column] = value;
      EXPECT_FALSE(moments_of(rows).is_finite());
    }
  }
}

TEST(FeatureMoments, RejectWhatDoesNotFit) {
  EXPECT_EQ(error_of([] { FeatureMoments(0); }), "FeatureMoments: dims must be above 0, got 0");
  FeatureMoments moments(3);
  EXPECT_EQ(error_of([&] {
              moments.update(torch::zeros({2, 4}));
            }),
            "FeatureMoments: rows must be [rows, 3], got [2, 4]");
  EXPECT_EQ(error_of([&] { moments.merge(FeatureMoments(2)); }),
            "FeatureMoments: can merge only dims 3, got 2");
  EXPECT_EQ(error_of([&] { moments.total_variance(); }), "FeatureMoments: no rows were shown");
}

}  // namespace kelvin::feature_moments_test
