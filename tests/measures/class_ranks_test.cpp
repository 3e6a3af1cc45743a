#include "kelvin/measures/class_ranks.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::class_ranks_test {

SketchedSample sample_of(const torch::Tensor& rows, const torch::Tensor& labels,
                         int64_t sketch = 4096) {
  SketchedSample sample("some_measure", {.sketch = sketch});
  auto record = record_of(torch::zeros({rows.size(0), 2}), labels);
  record.layers = {{.name = "layer", .weight = {}, .output = rows.to(torch::kFloat32)}};
  sample.add(record);
  return sample;
}

torch::Tensor ranks_of(const torch::Tensor& rows, const torch::Tensor& labels, int64_t classes,
                       double gamma = 1e-3) {
  return class_ranks(sample_of(rows, labels), classes, gamma).layers.at(0).ranks;
}

TEST(ClassRanks, AreTheDimensionsEachClassVariesIn) {
  const auto labels = torch::arange(60) % 3;
  auto rows = noise({60, 8}, 0);
  // Class 1 moves in two directions around a mean of its own, class 2 not at all.
  for (int64_t i = 1; i < 60; i += 3) rows[i].slice(0, 2).fill_(5);
  for (int64_t i = 2; i < 60; i += 3) rows[i].fill_(0.3);
  expect_close(ranks_of(rows, labels, 3), doubles({8, 2, 0}), 0);
}

TEST(ClassRanks, AreThoseOfNumPyForManyAndFewSamples) {
  const auto fading = torch::logspace(0, -3, 12, 10, torch::kFloat64);
  const auto labels = torch::cat({torch::arange(150) % 3, torch::full({6}, 3, torch::kInt64)});
  const auto rows =
      ((noise({156, 12}, 1) * fading).matmul(noise({12, 12}, 2)) + 2).to(torch::kFloat32);
  const auto expected = oracle(R"(
e = [np.linalg.eigvalsh(np.cov(x["rows"][x["labels"] == c].astype(float).T)) for c in range(4)]
out["ranks"] = np.array([np.sum(v > 0.01 * v.max()) for v in e], dtype=float)
)",
                               {{"rows", rows}, {"labels", labels}})
                            .at("ranks");
  EXPECT_LT(expected.max().item<double>(), 12);
  expect_close(ranks_of(rows, labels, 4, 0.01), expected, 0);
}

TEST(ClassRanks, IgnoreRotationScaleAndOrder) {
  const auto labels = torch::arange(80) % 2;
  const auto rows = noise({80, 10}, 3) * torch::logspace(0, -3, 10, 10, torch::kFloat64);
  const auto ranks = ranks_of(rows, labels, 2);
  EXPECT_LT(ranks.max().item<double>(), 10);
  const auto rotation = std::get<0>(torch::linalg_qr(noise({10, 10}, 4)));
  const auto order = torch::randperm(80, at::make_generator<at::CPUGeneratorImpl>(5));
  expect_close(ranks_of(rows.matmul(rotation), labels, 2), ranks, 0);
  expect_close(ranks_of(1e3 * rows + 1, labels, 2), ranks, 0);
  expect_close(ranks_of(rows.index_select(0, order), labels.index_select(0, order), 2), ranks, 0);
}

TEST(ClassRanks, AreAveragedOverClassesWithTwoSamplesAtLeast) {
  // 4 samples of class 0, 1 of class 1, none of class 2, 2 of class 3.
  const auto ranks =
      class_ranks(sample_of(noise({7, 9}, 6), labels_of({0, 3, 0, 1, 0, 0, 3})), 4, 1e-3);
  EXPECT_EQ(ranks.sizes, (std::vector<int64_t>{4, 1, 0, 2}));
  const auto readings = class_rank_readings(ranks);
  ASSERT_EQ(readings.size(), 3U);
  EXPECT_FALSE(readings[0].index.has_value());
  EXPECT_EQ(readings[0].layer, "layer");
  EXPECT_EQ(readings[0].value, 2);  // of 3 and 1, one less than the samples
  EXPECT_EQ(readings[0].definition["upper_bound"], 2);
  EXPECT_EQ(readings[0].definition["classes"], 2);
  EXPECT_EQ(readings[0].definition["samples"], 6);
  EXPECT_EQ(readings[0].definition["samples_per_class"], 3);
  EXPECT_EQ(readings[1].index, 0);
  EXPECT_EQ(readings[1].value, 3);
  EXPECT_EQ(readings[1].definition["upper_bound"], 3);
  EXPECT_EQ(readings[2].index, 3);
  EXPECT_EQ(readings[2].value, 1);
  EXPECT_EQ(readings[2].definition["samples"], 2);
  for (const auto& reading : readings) {
    EXPECT_EQ(reading.name, "class_rank");
    EXPECT_EQ(reading.split, "test");
    EXPECT_FALSE(reading.definition.contains("projected_to"));
  }
}

TEST(ClassRanks, SayWhatTheyWereProjectedTo) {
  const auto sample = sample_of(noise({40, 90}, 7), torch::arange(40) % 2, /*sketch=*/30);
  const auto readings = class_rank_readings(class_ranks(sample, 2, 1e-3));
  EXPECT_EQ(readings.at(0).definition["features"], 90);
  EXPECT_EQ(readings.at(0).definition["projected_to"], 30);
  EXPECT_EQ(readings.at(0).definition["upper_bound"], 19);
}

TEST(ClassRanks, OfSingleSamplesGiveNoReadings) {
  const auto ranks = class_ranks(sample_of(noise({3, 4}, 8), labels_of({0, 1, 2})), 3, 1e-3);
  EXPECT_TRUE(class_rank_readings(ranks).empty());
}

TEST(ClassRanks, RejectAGammaOutsideZeroToOne) {
  const auto sample = sample_of(noise({3, 4}, 8), labels_of({0, 1, 2}));
  EXPECT_EQ(error_of([&] { class_ranks(sample, 3, 1); }),
            "class_ranks: gamma must be in (0, 1), got 1");
}

}  // namespace kelvin::class_ranks_test
