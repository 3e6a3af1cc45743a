#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::layer_similarity_test {

// Layers "0", "1", ... with these outputs.
Record record_with(const std::vector<torch::Tensor>& outputs) {
  const auto samples = outputs.at(0).size(0);
  auto record = record_of(torch::zeros({samples, 2}), torch::zeros({samples}, torch::kInt64));
  for (const auto& output : outputs) {
    record.layers.push_back({.name = std::to_string(record.layers.size()),
                             .weight = {},
                             .output = output.to(torch::kFloat32)});
  }
  return record;
}

torch::Tensor cka_of(const std::vector<torch::Tensor>& outputs, const Values& values = {}) {
  const auto measure = make_measure("layer_similarity", values);
  show(*measure, {record_with(outputs)});
  return measure->curves().at("cka");
}

double cka_of_two(const torch::Tensor& a, const torch::Tensor& b, const Values& values = {}) {
  return cka_of({a, b}, values)[0][1].item<double>();
}

std::vector<torch::Tensor> some_outputs(int64_t samples = 40) {
  const auto first = noise({samples, 3, 4, 4}, 1);
  const auto second = first.flatten(1).matmul(noise({48, 10}, 2)).relu();
  const auto third = second.matmul(noise({10, 6}, 3)) + 2;
  return {first, second, third};
}

TEST(LayerSimilarity, OfALayerWithItselfIsOne) {
  const auto cka = cka_of(some_outputs());
  expect_close(cka.diagonal(), torch::ones({3}), 1e-12);
  expect_close(cka, cka.t(), 0);
  EXPECT_LT(cka[0][1].item<double>(), 0.99);
  EXPECT_GT(cka.min().item<double>(), 0);
}

TEST(LayerSimilarity, OfOrthogonalCentredFeaturesIsZero) {
  const auto a = torch::tensor({{1.0}, {1.0}, {-1.0}, {-1.0}});
  const auto b = torch::tensor({{1.0}, {-1.0}, {1.0}, {-1.0}});
  EXPECT_NEAR(cka_of_two(a, b), 0, 1e-15);
  // Grams a a^T and a a^T + b b^T: 16 over 4 * sqrt(32).
  EXPECT_NEAR(cka_of_two(a, torch::cat({a, b}, 1)), std::sqrt(0.5), 1e-12);
}

TEST(LayerSimilarity, IgnoresRotationScaleShiftAndOrderOfSamples) {
  const auto outputs = some_outputs();
  const auto& a = outputs[1];
  const auto& b = outputs[2];
  const double expected = cka_of_two(a, b);
  const auto rotation = std::get<0>(torch::linalg_qr(noise({10, 10}, 4)));
  EXPECT_NEAR(cka_of_two(a.matmul(rotation), b), expected, 1e-6);
  EXPECT_NEAR(cka_of_two(100 * a, b), expected, 1e-6);
  EXPECT_NEAR(cka_of_two(a + noise({10}, 5), b), expected, 1e-5);
  const auto order = torch::randperm(40, at::make_generator<at::CPUGeneratorImpl>(6));
  EXPECT_NEAR(cka_of_two(a.index_select(0, order), b.index_select(0, order)), expected, 1e-12);
  EXPECT_GT(std::abs(cka_of_two(a, b.index_select(0, order)) - expected), 0.1);
}

TEST(LayerSimilarity, IsThatOfNumPy) {
  const auto record = record_with(some_outputs());
  const auto expected = oracle(R"(
def centred(m):
    m = m.astype(float).reshape(len(m), -1)
    return m - m.mean(0)
r = [centred(x[str(i)]) for i in range(3)]
n = np.linalg.norm
out["cka"] = np.array([[n(a.T @ b)**2 / (n(a.T @ a) * n(b.T @ b)) for b in r] for a in r])
)",
                               {{"0", record.layers[0].output},
                                {"1", record.layers[1].output},
                                {"2", record.layers[2].output}});
  const auto measure = make_measure("layer_similarity");
  show(*measure, {record});
  expect_close(measure->curves().at("cka"), expected.at("cka"), 1e-10);
}

TEST(LayerSimilarity, ReadsTheLastLayerTheNextAndTheMeanOfNeighbours) {
  const auto outputs = some_outputs();
  const auto cka = cka_of(outputs);
  const auto at = [&](int64_t i, int64_t j) { return cka[i][j].item<double>(); };
  const auto readings = measured("layer_similarity", {record_with(outputs)});
  ASSERT_EQ(readings.size(), 6U);
  const auto last = readings_of(readings, "cka", {{"with", "the last layer"}});
  ASSERT_EQ(last.size(), 3U);
  for (int64_t i = 0; i < 3; ++i) {
    const auto& reading = last[static_cast<size_t>(i)];
    EXPECT_EQ(reading.layer, std::to_string(i));
    EXPECT_EQ(reading.definition["other_layer"], "2");
    EXPECT_EQ(reading.value, at(i, 2));
  }
  EXPECT_EQ(readings[0].definition["with"], "the last layer");
  const auto next = readings_of(readings, "cka", {{"with", "the next layer"}});
  ASSERT_EQ(next.size(), 2U);
  EXPECT_EQ(next[0].value, at(0, 1));
  EXPECT_EQ(next[0].definition["features"], 48);
  EXPECT_EQ(next[0].definition["samples"], 40);
  EXPECT_EQ(next[1].value, at(1, 2));
  const auto mean = reading_of(readings, "cka_neighbours");
  EXPECT_DOUBLE_EQ(mean.value, (at(0, 1) + at(1, 2)) / 2);
  EXPECT_EQ(mean.layer, "");
  EXPECT_EQ(mean.definition["pairs"], 2);
}

TEST(LayerSimilarity, OfProjectedFeaturesIsNearlyTheSame) {
  const auto base = noise({60, 20}, 7);
  const auto wide = base.matmul(noise({20, 3000}, 8));
  const auto other = base.slice(1, 0, 10).matmul(noise({10, 3000}, 9)).relu();
  const double exact = cka_of_two(wide, other);
  const double projected = cka_of_two(wide, other, {{"sketch", 1024}});
  EXPECT_NE(projected, exact);
  EXPECT_NEAR(projected, exact, 0.03);
  const auto readings =
      measured("layer_similarity", {record_with({wide, other})}, {{"sketch", 1024}});
  EXPECT_EQ(readings.front().definition["features"], 3000);
  EXPECT_EQ(readings.front().definition["projected_to"], 1024);
}

TEST(LayerSimilarity, LeavesOutLayersThatAreTheSameForAllSamples) {
  auto outputs = some_outputs();
  outputs.insert(outputs.begin() + 1, torch::full({40, 5}, 0.3));
  outputs.insert(outputs.begin(), torch::zeros({40, 5}));
  const auto cka = cka_of(outputs);
  for (const int64_t i : {0, 2}) expect_close(cka[i], torch::zeros({5}), 0);
  const auto readings = measured("layer_similarity", {record_with(outputs)});
  for (const auto& reading : readings) {
    EXPECT_TRUE(reading.layer != "0" && reading.layer != "2") << reading.layer;
  }
  EXPECT_EQ(readings_of(readings, "cka", {{"with", "the last layer"}}).size(), 3U);
  EXPECT_EQ(reading_of(readings, "cka_neighbours").definition["pairs"], 1);
  // Where nothing varies there is nothing to tell.
  EXPECT_TRUE(measured("layer_similarity", {record_with({torch::zeros({4, 2})})}).empty());
}

TEST(LayerSimilarity, OfOneLayerHasNoNeighbours) {
  const auto readings = measured("layer_similarity", {record_with({noise({9, 4}, 10)})});
  ASSERT_EQ(readings.size(), 1U);
  EXPECT_NEAR(readings[0].value, 1, 1e-12);
}

TEST(LayerSimilarity, LooksAtItsSampleAloneHoweverItIsBatched) {
  const auto outputs = some_outputs();
  const auto part = [&](int64_t begin, int64_t end) {
    std::vector<torch::Tensor> parts;
    for (const auto& output : outputs) parts.push_back(output.slice(0, begin, end));
    return record_with(parts);
  };
  const auto whole = measured("layer_similarity", {part(0, 25)});
  const auto measure = make_measure("layer_similarity", {{"samples", 25}});
  EXPECT_EQ(measure->needs().sample, 25);
  measure->see_sample(part(0, 11));
  measure->see_sample(part(11, 40));
  expect_same(measure->compute(), whole, 1e-12);
  measure->update(part(0, 40));
  expect_same(measure->compute(), whole, 1e-12);
}

TEST(LayerSimilarity, KnowsWhatItHolds) {
  const auto record = record_with(some_outputs(5));
  const auto measure = make_measure("layer_similarity", {{"sketch", 20}});
  const auto bytes = [](int64_t samples) {
    return samples * (20 + 10 + 6) * 4 + (3 * samples * samples + 9) * 8;
  };
  EXPECT_EQ(measure->memory(record, 100), bytes(100));
  EXPECT_EQ(measure->memory(record, 10'000), bytes(1024));
}

TEST(LayerSimilarity, RejectsFeaturesThatAreNotFinite) {
  auto outputs = some_outputs();
  outputs[1][3][4] = std::nan("");
  EXPECT_EQ(error_of([&] { measured("layer_similarity", {record_with(outputs)}); }),
            "layer_similarity: layer '1' must be finite, has a NaN or an infinity");
}

TEST(LayerSimilarity, RejectsSettingsOutOfRange) {
  EXPECT_EQ(error_of([] {
              make_measure("layer_similarity", {{"samples", 1}});
            }),
            "measure.layer_similarity.samples: must be at least 2, got 1");
  EXPECT_EQ(error_of([] {
              make_measure("layer_similarity", {{"sketch", 0}});
            }),
            "measure.layer_similarity.sketch: must be at least 1, got 0");
}

}  // namespace kelvin::layer_similarity_test
