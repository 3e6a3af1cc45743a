#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::loss_symmetry_test {

Record some_record(int64_t samples, double scale) {
  auto record = record_of((scale * noise({samples, 5}, 1)).to(torch::kFloat32),
                          torch::arange(samples) * 3 % 5);
  record.features = noise({samples, 8}, 2).to(torch::kFloat32);
  record.weight = noise({record.logits.size(1), 8}, 3).to(torch::kFloat32);
  return record;
}

Record part_of(const Record& record, int64_t first, int64_t count) {
  auto part = record;
  part.logits = record.logits.narrow(0, first, count);
  part.labels = record.labels.narrow(0, first, count);
  part.features = record.features.narrow(0, first, count);
  return part;
}

// All pairs and all gradients one by one.
TEST(LossSymmetry, AgreesWithNumPy) {
  for (const double temperature : {0.3, 1., 50.}) {
    const auto record = some_record(30, 4);
    const auto expected = oracle(
        R"(
z = x["logits"].astype(float) / x["t"]
p = np.exp(z - z.max(1, keepdims=True))
p /= p.sum(1, keepdims=True)
n, c = p.shape
losses = -np.log(p[np.arange(n), x["labels"]])
out["entropy_ratio"] = np.mean(-(p * np.log(p)).sum(1)) / np.log(c)
out["loss_spread"] = np.std(losses)
out["loss_distance"] = losses.mean() - np.log(c)
lengths = np.linalg.norm(p, axis=1)
cosines = [p[i] @ p[j] / lengths[i] / lengths[j] for i in range(n) for j in range(n) if i != j]
out["probability_cosine"] = np.mean(cosines)
g = [np.outer(p[i] - np.eye(c)[x["labels"][i]], x["features"][i].astype(float)) / x["t"]
     for i in range(n)]
out["gradient_diversity"] = sum((each ** 2).sum() for each in g) / (sum(g) ** 2).sum()
)",
        {{"logits", record.logits},
         {"labels", record.labels},
         {"features", record.features},
         {"t", torch::tensor(temperature, torch::kFloat64)}});
    const auto readings = measured(
        "loss_symmetry", {part_of(record, 0, 7), part_of(record, 7, 1), part_of(record, 8, 22)}, {},
        {.temperature = temperature});
    ASSERT_EQ(readings.size(), expected.size());
    for (const auto& [name, value] : expected) {
      const auto reading =
          reading_of(readings, name, {{"temperature", temperature}, {"samples", 30}});
      EXPECT_NEAR(reading.value, value.item<double>(), 1e-10 * (1 + std::abs(reading.value)))
          << name;
      EXPECT_EQ(reading.split, "test");
    }
  }
}

TEST(LossSymmetry, IsPerfectAtAnInfiniteTemperature) {
  const auto readings = measured("loss_symmetry", {some_record(50, 1)}, {}, {.temperature = 1e9});
  EXPECT_NEAR(reading_of(readings, "entropy_ratio").value, 1, 1e-12);
  EXPECT_NEAR(reading_of(readings, "loss_spread").value, 0, 1e-8);
  EXPECT_NEAR(reading_of(readings, "loss_distance").value, 0, 1e-8);
  EXPECT_NEAR(reading_of(readings, "probability_cosine").value, 1, 1e-12);
}

TEST(LossSymmetry, KnowsTheDiversityOfEqualAndOfOrthogonalGradients) {
  auto equal = record_of(torch::zeros({4, 3}), labels_of({1, 1, 1, 1}));
  equal.features = torch::ones({4, 2});
  equal.weight = torch::ones({equal.logits.size(1), 2});
  EXPECT_NEAR(reading_of(measured("loss_symmetry", {equal}), "gradient_diversity").value, 0.25,
              1e-12);
  auto orthogonal = equal;
  orthogonal.features = torch::eye(4);
  orthogonal.weight = torch::ones({orthogonal.logits.size(1), 4});
  EXPECT_NEAR(reading_of(measured("loss_symmetry", {orthogonal}), "gradient_diversity").value, 1,
              1e-12);
}

TEST(LossSymmetry, LeavesOutWhatASampleAloneHasNot) {
  const auto readings = measured("loss_symmetry", {some_record(1, 1)});
  EXPECT_TRUE(readings_of(readings, "probability_cosine").empty());
  EXPECT_EQ(reading_of(readings, "loss_spread").value, 0);
  EXPECT_NEAR(reading_of(readings, "gradient_diversity").value, 1, 1e-12);
}

TEST(LossSymmetry, LeavesOutTheDiversityOfGradientsThatVanish) {
  auto record = record_of(1e6 * torch::eye(3), labels_of({0, 1, 2}));
  record.features = torch::ones({3, 2});
  record.weight = torch::ones({record.logits.size(1), 2});
  const auto readings = measured("loss_symmetry", {record});
  EXPECT_EQ(readings.size(), 4U);
  EXPECT_TRUE(readings_of(readings, "gradient_diversity").empty());
  for (const auto& reading : readings) EXPECT_TRUE(std::isfinite(reading.value)) << reading.name;
}

TEST(LossSymmetry, LeavesOutTheDiversityOfGradientsWithoutFeatures) {
  const auto record = some_record(6, 1);
  auto bare = record;
  bare.features = torch::Tensor();
  for (const auto& records : {std::vector<Record>{bare}, {record, bare}, {bare, record}}) {
    const auto readings = measured("loss_symmetry", records);
    EXPECT_EQ(readings.size(), 4U);
    EXPECT_TRUE(readings_of(readings, "gradient_diversity").empty());
  }
}

TEST(LossSymmetry, HasNoEntropyRatioOfASingleClass) {
  const auto readings =
      measured("loss_symmetry", {record_of(torch::zeros({3, 1}), labels_of({0, 0, 0}))});
  EXPECT_TRUE(readings_of(readings, "entropy_ratio").empty());
  EXPECT_EQ(reading_of(readings, "loss_distance").value, 0);
}

TEST(LossSymmetry, IgnoresTrainingAndOodSamples) {
  auto train = some_record(4, 1);
  train.split = Split::train;
  auto ood = some_record(4, 1);
  ood.ood = "textures";
  expect_same(measured("loss_symmetry", {train, some_record(9, 1), ood}),
              measured("loss_symmetry", {some_record(9, 1)}));
  EXPECT_EQ(error_of([&] {
              measured("loss_symmetry", {train, ood});
            }),
            "loss_symmetry: no records of the test split were shown");
}

TEST(LossSymmetry, RejectsATemperatureThatIsNotAboveZero) {
  EXPECT_EQ(error_of([] { make_measure("loss_symmetry", {}, {.temperature = 0}); }),
            "loss_symmetry: temperature must be a finite number above 0, got 0");
}

}  // namespace kelvin::loss_symmetry_test
