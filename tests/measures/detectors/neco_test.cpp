#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "kelvin/measures/detectors/detector.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

Record features_record(const torch::Tensor& features, int64_t classes = 3) {
  Record record;
  record.split = Split::train;
  record.classes = classes;
  record.features = features;
  return record;
}

std::unique_ptr<Detector> make_neco(const Values& values = {}) {
  Settings settings("detector.neco", values);
  return detectors().find("neco").make({}, settings);
}

torch::Tensor neco_scores(const torch::Tensor& train, const torch::Tensor& test,
                          const Values& values = {}) {
  const auto neco = make_neco(values);
  neco->fit(features_record(train));
  return neco->score(features_record(test));
}

// Correlated features of different size and offset.
torch::Tensor correlated(int64_t samples, uint64_t seed) {
  return noise({samples, 7}, seed).matmul(noise({7, 7}, 100)) + 5 * noise({7}, 101);
}

TEST(Neco, IsTheShareOfAFeatureAlongThePrincipalDirection) {
  // Two features that always agree: the direction is (1, 1).
  const auto train = torch::tensor({{-1.0, -1.0}, {1.0, 1.0}});
  const auto test = torch::tensor({{3.0, 3.0}, {2.0, -2.0}, {5.0, 0.0}});
  expect_close(neco_scores(train, test, {{"dimensions", 1}}), doubles({1, 0, std::sqrt(0.5)}),
               1e-12);
}

TEST(Neco, IsThatOfScikitLearnAlsoWithConstantFeatures) {
  const auto train = correlated(90, 0);
  const auto test = torch::cat({correlated(20, 1), 3 * noise({20, 7}, 2)});
  auto constant = train.clone();
  constant.select(1, 2).fill_(0.1);
  constant.select(1, 4).zero_();
  const auto expected = oracle(R"(
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
for name in ("train", "constant"):
    scaler = StandardScaler().fit(x[name])
    pca = PCA().fit(scaler.transform(x[name]))
    coordinates = pca.transform(scaler.transform(x["test"]))
    for d in (1, 3, 7):
        norms = np.linalg.norm(coordinates[:, :d], axis=1)
        out[f"{name}{d}"] = norms / np.linalg.norm(coordinates, axis=1)
)",
                               {{"train", train}, {"constant", constant}, {"test", test}});
  expect_close(neco_scores(train, test, {{"dimensions", 1}}), expected.at("train1"), 1e-9);
  expect_close(neco_scores(train, test), expected.at("train3"), 1e-9);  // as many as classes
  expect_close(neco_scores(train, test, {{"dimensions", 7}}), expected.at("train7"), 1e-9);
  expect_close(neco_scores(constant, test), expected.at("constant3"), 1e-9);
}

TEST(Neco, IgnoresTheScaleAndOffsetOfEachFeature) {
  const auto train = correlated(40, 5);
  const auto test = correlated(10, 6);
  const auto scale = torch::logspace(-2, 2, 7, 10, torch::kFloat64);
  const auto offset = noise({7}, 7);
  expect_close(neco_scores(train * scale + offset, test * scale + offset), neco_scores(train, test),
               1e-9);
}

TEST(Neco, RanksNothingWhenAllDimensionsAreKept) {
  const auto neco = make_neco();
  neco->fit(features_record(correlated(40, 8), /*classes=*/100));
  EXPECT_EQ(neco->definition()["dimensions"], 7);
  EXPECT_EQ(neco->definition()["max_logit"], false);
  EXPECT_EQ(neco->definition()["tells_nothing"], true);
  expect_close(neco->score(features_record(correlated(5, 9))), torch::ones({5}), 0);
}

TEST(Neco, GivesTheMeanOfTrainingTheLowestScore) {
  const auto train = torch::tensor({{-1.0, -1.0}, {1.0, 1.0}});
  expect_close(neco_scores(train, torch::zeros({1, 2})), doubles({0}), 0);
}

TEST(Neco, RejectsScoringBeforeFitting) {
  EXPECT_EQ(error_of([] {
              make_neco()->score(features_record(noise({2, 3}, 0)));
            }),
            "neco: must be fitted before it scores");
}

TEST(Neco, RejectsRecordsItCannotUse) {
  const auto neco = make_neco();
  EXPECT_EQ(error_of([&] { neco->fit(Record{}); }), "neco: needs features, the records have none");
  EXPECT_EQ(error_of([&] {
              neco->fit(features_record(noise({1, 3}, 0)));
            }),
            "neco: needs at least 2 training samples, got 1");
  neco->fit(features_record(noise({9, 3}, 0)));
  EXPECT_EQ(error_of([&] { neco->score(Record{}); }),
            "neco: needs features, the records have none");
}

TEST(Neco, RejectsNegativeDimensions) {
  EXPECT_EQ(error_of([] {
              make_neco({{"dimensions", -1}});
            }),
            "detector.neco.dimensions: must not be below 0, got -1");
}

}  // namespace
}  // namespace kelvin
