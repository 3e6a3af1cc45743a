#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/layer_records.h"
#include "tests/support/measured.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::alignment_test {

struct Aligned {
  Readings readings;
  NamedTensors curves;
};

Aligned aligned(const std::vector<Record>& records, const Values& values = {}) {
  const auto measure = make_measure("alignment", values);
  for (const auto& record : records) measure->see_sample(record);
  return {.readings = measure->compute(), .curves = measure->curves()};
}

Aligned aligned(const torch::Tensor& weight, const torch::Tensor& input) {
  return aligned({record_with_layers({layer_of("linear", weight, input)})});
}

double alignment_of(const torch::Tensor& weight, const torch::Tensor& input) {
  return layer_reading(aligned(weight, input).readings, "alignment", "linear").value;
}

TEST(Alignment, OfWeightsThatLookWhereInputsAreIsOne) {
  // Both have the unit vectors as singular vectors, in different orders.
  const auto weight = torch::diag(doubles({1, 3, 2}));
  const auto input = torch::diag(doubles({7, 6, 5}));
  const auto result = aligned(weight, input);
  EXPECT_NEAR(layer_reading(result.readings, "alignment", "linear").value, 1, 1e-12);
  // Rows: units 1, 2, 0 of W; columns: units 0, 1, 2 of A.
  const auto expected = torch::tensor({{0, 1, 0}, {0, 0, 1}, {1, 0, 0}}, torch::kFloat64);
  expect_close(result.curves.at("alignment/linear"), expected, 1e-12);
}

TEST(Alignment, IsTheCosineBetweenTwoDirections) {
  for (const double angle : {0.0, 0.3, 1.0, 1.5, 2.5}) {
    const auto weight = 4 * torch::tensor({{1, 0, 0}}, torch::kFloat64);
    const auto input = doubles({-2, 1, 5}).unsqueeze(1) *
                       doubles({std::cos(angle), std::sin(angle), 0}).unsqueeze(0);
    EXPECT_NEAR(alignment_of(weight, input), std::abs(std::cos(angle)), 1e-9) << angle;
  }
}

TEST(Alignment, OfOrthogonalSpacesIsZero) {
  const auto first = torch::cat({noise({4, 3}, 1), torch::zeros({4, 5})}, 1);
  const auto second = torch::cat({torch::zeros({9, 3}), noise({9, 5}, 2)}, 1);
  EXPECT_NEAR(alignment_of(first, second), 0, 1e-9);
}

TEST(Alignment, IsNotCentred) {
  // All samples are the same: nothing would be left around their mean.
  const auto input = doubles({3, 4}).expand({6, 2});
  EXPECT_NEAR(alignment_of(torch::tensor({{1, 0}}, torch::kFloat64), input), 0.6, 1e-9);
}

TEST(Alignment, IgnoresVectorsOfSingularValuesThatAreNoise) {
  // Both have rank 1; any vectors that complete theirs would have some larger cosine.
  const auto weight = noise({6, 1}, 3).matmul(noise({1, 8}, 4));
  const auto input = noise({20, 1}, 5).matmul(noise({1, 8}, 6));
  const auto result = aligned(weight, input);
  const auto v = weight[0] / weight[0].norm();
  const auto u = input[0] / input[0].norm();
  const auto reading = layer_reading(result.readings, "alignment", "linear");
  EXPECT_NEAR(reading.value, v.dot(u).abs().item<double>(), 1e-9);
  EXPECT_EQ(reading.definition["weight_vectors"], 1);
  EXPECT_EQ(reading.definition["input_vectors"], 1);
}

TEST(Alignment, AgreesWithNumPyInEveryCosine) {
  // Singular values differ clearly, so that their vectors are well defined.
  const auto fading = [](int64_t dims) {
    return torch::logspace(0, -2, dims, 10, torch::kFloat64);
  };
  const auto maps = noise({20, 4, 6, 6}, 10).relu() * fading(4).view({1, 4, 1, 1});
  const auto record = record_with_layers(
      {layer_of("conv", noise({30, 4, 3, 3}, 11), maps, 2, 1),
       layer_of("tokens", noise({40, 24}, 12) * fading(24), noise({20, 5, 24}, 13) * fading(24)),
       layer_of("linear", noise({10, 50}, 14), noise({20, 50}, 15) + 1)});
  NamedTensors inputs;
  for (const auto& layer : record.layers) {
    inputs[layer.name + "/w"] = layer.weight;
    inputs[layer.name + "/a"] = layer.input;
  }
  const auto expected = oracle(std::string(kLayerMatricesInPython) + R"(
for name, stride, padding in (("conv", 2, 1), ("tokens", 1, 0), ("linear", 1, 0)):
    w = weight_matrix(x[name + "/w"])
    a = input_matrix(x[name + "/w"], x[name + "/a"], stride, padding)
    v = np.linalg.svd(w, full_matrices=False)[2][:15].T
    u = np.linalg.svd(a, full_matrices=False)[0][:, :15]
    out[name] = np.abs(v.T @ u)
)",
                               inputs);
  const auto result = aligned({record});
  double sum = 0;
  for (const auto& layer : record.layers) {
    const auto& cosines = expected.at(layer.name);
    expect_close(result.curves.at("alignment/" + layer.name), cosines, 1e-6);
    const auto reading = layer_reading(result.readings, "alignment", layer.name);
    EXPECT_NEAR(reading.value, cosines.max().item<double>(), 1e-6);
    EXPECT_EQ(reading.definition["weight_vectors"], cosines.size(0));
    EXPECT_EQ(reading.definition["input_vectors"], cosines.size(1));
    sum += reading.value;
  }
  EXPECT_EQ(result.readings.front().layer, "");
  EXPECT_NEAR(layer_reading(result.readings, "alignment", "").value, sum / 3, 1e-12);
  EXPECT_EQ(result.readings.front().definition["layers"], 3);
  EXPECT_EQ(result.readings.front().definition["zero_layers_left_out"], 0);
}

TEST(Alignment, IgnoresScaleAndCommonRotations) {
  const auto weight = noise({5, 9}, 20);
  const auto input = noise({30, 9}, 21);
  const auto plain = aligned(weight, input).curves.at("alignment/linear");
  const auto turn = random_rotation(9, 22);
  const auto turned = aligned(1e-12 * weight.matmul(turn), 1e9 * input.matmul(turn));
  expect_close(turned.curves.at("alignment/linear"), plain, 1e-9);
  // Turning what comes out of W changes nothing either; turning A alone does.
  const auto left = aligned(random_rotation(5, 23).matmul(weight), input);
  expect_close(left.curves.at("alignment/linear"), plain, 1e-9);
  const auto other = aligned(weight, input.matmul(turn)).curves.at("alignment/linear");
  EXPECT_GT((other - plain).abs().max().item<double>(), 0.1);
}

TEST(Alignment, IgnoresTheOrderOfSamplesAndTheirSplitIntoBatches) {
  const auto record = small_network(12, 30);
  const auto whole = aligned({record}).readings;
  expect_same(aligned({samples_of(record, 0, 5), samples_of(record, 5, 12)}).readings, whole, 1e-9);
  expect_same(aligned({samples_of(record, torch::arange(12).flip(0))}).readings, whole, 1e-9);
}

TEST(Alignment, LooksAtTheFirstSamplesOnly) {
  const auto record = small_network(12, 40);
  const Values values = {{"samples", 7}};
  const auto first = aligned({samples_of(record, 0, 7)}, values).readings;
  expect_same(aligned({record}, values).readings, first, 1e-12);
  EXPECT_GT(std::abs(aligned({record}).readings[0].value - first[0].value), 1e-6);
  EXPECT_EQ(make_measure("alignment", values)->needs().sample, 7);
  EXPECT_EQ(make_measure("alignment")->needs().sample, 512);
}

TEST(Alignment, HasAsManyVectorsAsThereAre) {
  const auto result = aligned({small_network(3, 50)}, {{"k", 4}});
  // W is [4, 27], [5, 4] and [3, 8]; A has 27 columns, 21 and 3.
  EXPECT_EQ(result.curves.at("alignment/conv").sizes(), (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(result.curves.at("alignment/tokens").sizes(), (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(result.curves.at("alignment/linear").sizes(), (std::vector<int64_t>{3, 3}));
  const auto one = aligned({small_network(1, 51)});
  EXPECT_EQ(one.curves.at("alignment/linear").sizes(), (std::vector<int64_t>{3, 1}));
}

TEST(Alignment, LeavesLayersOfZerosOut) {
  const auto plain = layer_of("plain", noise({2, 3}, 60), noise({4, 3}, 61));
  const auto weightless = layer_of("weightless", torch::zeros({2, 3}), torch::ones({4, 3}));
  const auto dead = layer_of("dead", torch::ones({2, 3}), torch::zeros({4, 3}));
  const auto result = aligned({record_with_layers({weightless, plain, dead})});
  ASSERT_EQ(result.readings.size(), 2U);
  EXPECT_EQ(result.readings[0].layer, "");
  EXPECT_EQ(result.readings[1].layer, "plain");
  EXPECT_EQ(result.readings[0].value, result.readings[1].value);
  EXPECT_EQ(result.readings[0].definition["layers"], 1);
  EXPECT_EQ(result.readings[0].definition["zero_layers_left_out"], 2);
  EXPECT_EQ(result.curves.size(), 1U);
  EXPECT_TRUE(aligned({record_with_layers({weightless, dead})}).readings.empty());
}

TEST(Alignment, SeesSamplesThatComeAfterAReading) {
  const auto record = small_network(12, 70);
  const auto measure = make_measure("alignment");
  measure->see_sample(samples_of(record, 0, 5));
  measure->compute();
  measure->see_sample(samples_of(record, 5, 12));
  expect_same(measure->compute(), aligned({record}).readings, 1e-9);
}

TEST(Alignment, CountsItsMemory) {
  const auto record = small_network(4, 80);
  EXPECT_EQ(make_measure("alignment")->memory(record, 100),
            8 * (27 * 27 + 4 * 27 + 4 * 4 + 5 * 4 + 8 * 8 + 3 * 8) + 8 * 27 * 27);
}

TEST(Alignment, RejectsWhatItCannotMeasure) {
  auto record = small_network(4, 90);
  record.layers[2].input[0][0] = std::nan("");
  EXPECT_EQ(error_of([&] { aligned({record}); }),
            "alignment: input of layer 'linear' must be finite, has a NaN or an infinity");
  EXPECT_EQ(error_of([] {
              make_measure("alignment", {{"k", 0}});
            }),
            "measure.alignment.k: must be at least 1, got 0");
  EXPECT_EQ(error_of([] { aligned(std::vector<Record>{}); }),
            "alignment: no sample of the test split was shown");
}

}  // namespace kelvin::alignment_test
