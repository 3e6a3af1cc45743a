#include "kelvin/measures/class_moments.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "kelvin/numerics/neural_collapse.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::class_moments_test {

constexpr double kCutoff = kEigenvalueCutoff;

// 4 classes of which the third has no samples; the others have different sizes.
class ClassMoments : public testing::Test {
 protected:
  ClassSums sums() const {
    ClassSums result(4, 6);
    result.update(rows_, labels_);
    return result;
  }
  torch::Tensor mean_of(int64_t label) const { return rows_.index({labels_ == label}).mean(0); }

  const torch::Tensor labels_ = labels_of({0, 3, 1, 0, 1, 1, 3, 0, 0, 1});
  const torch::Tensor rows_ = noise({10, 6}, 1) + labels_.unsqueeze(1) * noise({6}, 2) + 5;
};

TEST_F(ClassMoments, CentresAreTheMeansOfTheClassesThatHaveSamples) {
  const ClassCentres centres(sums());
  EXPECT_EQ(centres.size(), 3);
  EXPECT_EQ(centres.samples(), 10);
  expect_close(centres.classes, labels_of({0, 1, 3}), 0);
  expect_close(centres.counts, doubles({4, 4, 2}), 0);
  const auto means = torch::stack({mean_of(0), mean_of(1), mean_of(3)});
  expect_close(centres.means(), means, 1e-14);
  expect_close(centres.mean, means.mean(0), 1e-14);
  expect_close(centres.centred.sum(0), torch::zeros({6}), 1e-14);
  expect_close(centres.mean + centres.sample_mean(), rows_.mean(0), 1e-14);
}

TEST_F(ClassMoments, SpreadIsTheCovarianceWithinClassesAlongTheMeans) {
  const ClassCentres centres(sums());
  ClassSpread spread(centres, kCutoff);
  spread.update(rows_, labels_);
  const auto places = labels_.clamp_max(2);
  const auto deviations = rows_ - centres.means().index_select(0, places);
  const auto covariance = deviations.t().matmul(deviations) / 10;
  ASSERT_EQ(spread.directions(), 2);
  EXPECT_EQ(spread.samples(), 10);
  // Coordinates have the lengths and angles of the centred means.
  const auto coordinates = spread.coordinates();
  expect_close(coordinates.matmul(coordinates.t()), centres.gram(), 1e-12);
  // The directions themselves, to turn the covariance of all features into theirs.
  const auto directions = torch::linalg_pinv(coordinates).matmul(centres.centred);
  expect_close(spread.within(), directions.matmul(covariance).matmul(directions.t()), 1e-12);
  EXPECT_NEAR(spread.total_within(), covariance.trace().item<double>(), 1e-13);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(spread.variances()[i].item<double>(),
                deviations.index({places == i}).square().sum(1).mean().item<double>(), 1e-13);
  }
}

TEST_F(ClassMoments, FindTheNearestCentre) {
  const ClassCentres centres(sums());
  ClassSpread spread(centres, kCutoff);
  const auto nearest_to = [&](const torch::Tensor& rows) {
    const auto distances = (rows.unsqueeze(1) - centres.means()).square().sum(-1);
    return centres.classes.index_select(0, distances.argmin(1));
  };
  expect_close(spread.update(rows_, labels_), nearest_to(rows_), 0);
  const auto others = noise({50, 6}, 3) + 5;
  expect_close(spread.nearest(others), nearest_to(others), 0);
  EXPECT_EQ(spread.samples(), 10);
}

TEST_F(ClassMoments, OfPartsAddUpToThoseOfTheWhole) {
  const auto part = [&](int64_t begin, int64_t end) {
    ClassSums result(4, 6);
    result.update(rows_.slice(0, begin, end), labels_.slice(0, begin, end));
    return result;
  };
  auto merged = part(0, 3);
  merged.merge(part(3, 10));
  expect_close(merged.sums(), sums().sums(), 1e-13);
  expect_close(merged.counts(), sums().counts(), 0);

  const ClassCentres centres(sums());
  ClassSpread whole(centres, kCutoff);
  whole.update(rows_, labels_);
  ClassSpread first(centres, kCutoff);
  ClassSpread second(centres, kCutoff);
  first.update(rows_.slice(0, 0, 3), labels_.slice(0, 0, 3));
  second.update(rows_.slice(0, 3), labels_.slice(0, 3));
  first.merge(second);
  expect_close(first.within(), whole.within(), 1e-13);
  expect_close(first.variances(), whole.variances(), 1e-13);
  EXPECT_EQ(first.samples(), 10);
  EXPECT_EQ(second.samples(), 7);
}

TEST_F(ClassMoments, DoNotLoseSmallSpreadAroundALargeMean) {
  const auto small = 1e-9 * noise({10, 6}, 4);
  const auto rows = 1000 + small + 100 * labels_.unsqueeze(1);
  ClassSums sums(4, 6);
  sums.update(rows, labels_);
  ClassSpread spread(ClassCentres(sums), kCutoff);
  spread.update(rows, labels_);
  double expected = 0;
  for (const int64_t label : {0, 1, 3}) {
    const auto own = small.index({labels_ == label});
    expected += (own - own.mean(0)).square().sum().item<double>() / 10;
  }
  // To the rounding of the rows themselves, 1e-13 of their 1e-9.
  EXPECT_NEAR(spread.total_within(), expected, 1e-3 * expected);
}

TEST_F(ClassMoments, OfOneMeanHaveNoDirections) {
  ClassSums sums(4, 6);
  const auto rows = torch::full({10, 6}, 0.1, torch::kFloat64);
  sums.update(rows, labels_);
  ClassSpread spread(ClassCentres(sums), kCutoff);
  EXPECT_EQ(spread.directions(), 0);
  spread.update(rows, labels_);
  EXPECT_EQ(spread.coordinates().sizes(), (torch::IntArrayRef{3, 0}));
  EXPECT_NEAR(spread.total_within(), 0, 1e-28);
}

TEST_F(ClassMoments, HaveNoMoreDirectionsThanFeatures) {
  ClassSums sums(4, 1);
  sums.update(rows_.narrow(1, 0, 1), labels_);
  EXPECT_EQ(ClassSpread(ClassCentres(sums), kCutoff).directions(), 1);
}

TEST_F(ClassMoments, RejectWhatDoesNotBelongTogether) {
  EXPECT_EQ(error_of([] { ClassSums(0, 3); }),
            "ClassSums: classes and dims must be above 0, got 0 and 3");
  EXPECT_EQ(error_of([&] { sums().merge(ClassSums(4, 5)); }),
            "ClassSums: can merge only the same shape, [4, 6], got [4, 5]");
  EXPECT_EQ(error_of([&] { sums().update(rows_.narrow(1, 0, 5), labels_); }),
            "ClassSums: rows must be [rows, 6], got [10, 5]");
  EXPECT_EQ(error_of([&] { sums().update(rows_, labels_.slice(0, 0, 9)); }),
            "ClassSums: labels must be [10], got [9]");
  EXPECT_EQ(error_of([] { ClassCentres(ClassSums(4, 5)); }),
            "ClassCentres: needs at least one sample, got none");
  ClassSpread spread(ClassCentres(sums()), kCutoff);
  EXPECT_EQ(error_of([&] { spread.update(rows_.slice(0, 0, 1), labels_of({2})); }),
            "ClassSpread: the second pass must show the samples of the first, has a class that had "
            "none");
  auto others = sums();
  others.update(rows_.slice(0, 0, 1), labels_.slice(0, 0, 1));
  EXPECT_EQ(error_of([&] { spread.merge(ClassSpread(ClassCentres(others), kCutoff)); }),
            "ClassSpread: can merge only what was measured around the same class means");
}

}  // namespace kelvin::class_moments_test
