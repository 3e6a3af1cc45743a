#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kelvin/ops/layer_matrices.h"
#include "tests/support/errors.h"
#include "tests/support/layer_records.h"
#include "tests/support/measured.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::norm_growth_test {

Readings grown(const std::vector<Record>& records, const Values& values = {}) {
  const auto measure = make_measure("norm_growth", values);
  for (const auto& record : records) measure->see_sample(record);
  return measure->compute();
}

Readings grown(const torch::Tensor& weight, const torch::Tensor& input) {
  const auto layer = layer_of("linear", weight, input);
  return grown({record_with_layers({layer}, layer.pre_activation)});
}

// A linear network of square layers, each input the product of the layer before.
Record linear_network(const std::vector<torch::Tensor>& weights, const torch::Tensor& input) {
  std::vector<LayerRecord> layers;
  auto rows = input;
  for (const auto& weight : weights) {
    layers.push_back(layer_of("layer" + std::to_string(layers.size()), weight, rows));
    rows = layers.back().pre_activation;
  }
  return record_with_layers(layers, rows);
}

TEST(NormGrowth, OfAlignedMatricesIsAllSingularValues) {
  // W and A have the unit vectors in the same order.
  const auto readings = grown(torch::diag(doubles({3, 2, 1})), torch::diag(doubles({10, 5, 1})));
  EXPECT_NEAR(layer_value(readings, "norm_of_singular_values", "linear"),
              std::sqrt(30 * 30 + 10 * 10 + 1), 1e-9);
  EXPECT_NEAR(layer_value(readings, "norm_alignment", "linear"), 1, 1e-12);
}

TEST(NormGrowth, OfMatricesInReverseOrderIsTheLeastAlignment) {
  const auto readings = grown(torch::diag(doubles({3, 2, 1})), torch::diag(doubles({1, 5, 10})));
  const auto largest = std::sqrt(30.0 * 30 + 10 * 10 + 1);
  EXPECT_NEAR(layer_value(readings, "norm_of_singular_values", "linear"), largest, 1e-9);
  EXPECT_NEAR(layer_value(readings, "norm_alignment", "linear"),
              std::sqrt(3.0 * 3 + 10 * 10 + 10 * 10) / largest, 1e-9);
}

TEST(NormGrowth, OfOrthogonalSpacesHasNoAlignment) {
  const auto weight = torch::tensor({{2.0, 0.0}}, torch::kFloat64);
  const auto input = torch::tensor({{0.0, 3.0}, {0.0, 4.0}}, torch::kFloat64);
  const auto readings = grown(weight, input);
  EXPECT_NEAR(layer_value(readings, "norm_of_singular_values", "linear"), 10, 1e-9);
  EXPECT_NEAR(layer_value(readings, "norm_alignment", "linear"), 0, 1e-9);
}

TEST(NormGrowth, HasPartsWhoseProductIsTheNorm) {
  const auto record = small_network(9, 1);
  const auto readings = grown({record});
  for (const auto& layer : record.layers) {
    const auto norm = product_matrix(layer.weight, layer.pre_activation).norm().item<double>();
    const auto alignment = layer_value(readings, "norm_alignment", layer.name);
    EXPECT_NEAR(layer_value(readings, "norm_of_singular_values", layer.name) * alignment, norm,
                1e-9 * norm);
    EXPECT_GT(alignment, 0);
    EXPECT_LT(alignment, 1);
  }
}

TEST(NormGrowth, IsLargestWhereVectorsMatch) {
  // No rotation of the inputs makes the product larger than its singular values allow.
  const auto weight = noise({4, 6}, 10) * torch::logspace(0, -2, 6, 10, torch::kFloat64);
  const auto input = noise({20, 6}, 11) * torch::logspace(0, -2, 6, 10, torch::kFloat64);
  const auto bound = layer_value(grown(weight, input), "norm_of_singular_values", "linear");
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto turned = input.matmul(random_rotation(6, 100 + seed));
    EXPECT_LE(turned.matmul(weight.t()).norm().item<double>(), bound * (1 + 1e-12));
    EXPECT_NEAR(layer_value(grown(weight, turned), "norm_of_singular_values", "linear"), bound,
                1e-9);
  }
}

TEST(NormGrowth, AgreesWithNumPyInEveryReading) {
  const auto record = small_network(20, 20);
  NamedTensors inputs = {{"logits", record.logits}};
  for (const auto& layer : record.layers) {
    inputs[layer.name + "/w"] = layer.weight;
    inputs[layer.name + "/a"] = layer.input;
  }
  const auto expected = oracle(std::string(kLayerMatricesInPython) + R"(
product = 1
for name, stride, padding in (("conv", 2, 1), ("tokens", 1, 0), ("linear", 1, 0)):
    w = weight_matrix(x[name + "/w"])
    a = input_matrix(x[name + "/w"], x[name + "/a"], stride, padding)
    sw, sa = (np.linalg.svd(m, compute_uv=False) for m in (w, a))
    n = min(len(sw), len(sa))
    matched = np.sqrt(np.sum(sw[:n] ** 2 * sa[:n] ** 2))
    out[name] = np.array([matched, np.linalg.norm(w @ a) / matched, np.linalg.norm(w, 2),
                          np.linalg.norm(w), np.sum(sw ** 2) / sw[0] ** 2,
                          np.sum(sw > 0.5 * sw[0])])
    out[name + "/spectrum"] = sw
    product *= np.linalg.norm(w, 2)
gain = np.linalg.norm(x["logits"], 2) / np.linalg.norm(x["conv/a"].reshape(20, -1), 2)
out["gains"] = np.array([product, gain, gain / product])
)",
                               inputs);
  const auto measure = make_measure("norm_growth", {{"gamma", 0.5}});
  measure->see_sample(record);
  const auto readings = measure->compute();
  const auto expect_all = [&](const std::vector<std::string>& names, const std::string& layer,
                              const torch::Tensor& values) {
    for (size_t i = 0; i < names.size(); ++i) {
      const auto value = values[static_cast<int64_t>(i)].item<double>();
      EXPECT_NEAR(layer_value(readings, names[i], layer), value, 1e-9 * value) << names[i] << layer;
    }
  };
  for (const auto& layer : record.layers) {
    expect_all({"norm_of_singular_values", "norm_alignment", "layer_top_singular_value",
                "weight_norm", "weight_stable_rank", "weight_rank"},
               layer.name, expected.at(layer.name));
    expect_close(measure->curves().at("weight_spectrum/" + layer.name),
                 expected.at(layer.name + "/spectrum"), 1e-10);
  }
  // The last layer stands for the network.
  expect_all({"norm_of_singular_values", "norm_alignment"}, "", expected.at("linear"));
  expect_all({"top_singular_product", "network_gain", "top_singular_share"}, "",
             expected.at("gains"));
  for (const char* name : {"weight_rank", "weight_stable_rank"}) {
    EXPECT_EQ(layer_reading(readings, name, "conv").definition["upper_bound"], 4) << name;
    EXPECT_EQ(layer_reading(readings, name, "tokens").definition["upper_bound"], 4) << name;
  }
  for (const char* name : {"weight_norm", "weight_stable_rank"}) {
    EXPECT_FALSE(layer_reading(readings, name, "conv").definition.contains("gamma")) << name;
  }
  EXPECT_FALSE(layer_reading(readings, "weight_norm", "conv").definition.contains("upper_bound"));
}

TEST(NormGrowth, OfAFullyAlignedNetworkIsTheProductOfTopSingularValues) {
  const auto readings = grown({linear_network(
      {torch::diag(doubles({2, 1})), torch::diag(doubles({3, 1})), torch::diag(doubles({5, 4}))},
      torch::tensor({{7.0, 0.0}, {1.0, 0.0}}, torch::kFloat64))});
  EXPECT_NEAR(layer_value(readings, "top_singular_product"), 30, 1e-9);
  EXPECT_NEAR(layer_value(readings, "network_gain"), 30, 1e-9);
  EXPECT_NEAR(layer_value(readings, "top_singular_share"), 1, 1e-12);
}

TEST(NormGrowth, OfALinearNetworkPassesOnAtMostAllOfTheProduct) {
  const auto readings = grown({linear_network(
      {noise({5, 5}, 30), noise({5, 5}, 31), noise({5, 5}, 32)}, noise({20, 5}, 33))});
  EXPECT_LT(layer_value(readings, "top_singular_share"), 1);
  EXPECT_GT(layer_value(readings, "top_singular_share"), 0);
}

TEST(NormGrowth, SurvivesProductsThatNoNumberHolds) {
  const auto network_of = [](double scale) {
    const std::vector<torch::Tensor> weights(20, scale * torch::eye(2, torch::kFloat64));
    auto record = linear_network(weights, torch::eye(2, torch::kFloat64));
    for (auto& layer : record.layers) layer.input = torch::eye(2, torch::kFloat64);
    record.logits = 1e5 * torch::eye(2, torch::kFloat64);
    return record;
  };
  const auto large = grown({network_of(1e20)});
  EXPECT_FALSE(has_reading(large, "top_singular_product", ""));
  EXPECT_NEAR(layer_value(large, "network_gain"), 1e5, 1e-6);
  EXPECT_EQ(layer_value(large, "top_singular_share"), 0);
  const auto fair = grown({network_of(1e10)});
  EXPECT_NEAR(layer_value(fair, "top_singular_product") / 1e200, 1, 1e-9);
  EXPECT_NEAR(layer_value(fair, "top_singular_share") / 1e-195, 1, 1e-9);
}

TEST(NormGrowth, ScalesWithWeightsAndInputs) {
  const auto weight = noise({4, 6}, 40);
  const auto input = noise({20, 6}, 41);
  const auto plain = grown(weight, input);
  const auto scaled = grown(3 * weight, 5 * input);
  const auto ratio = [&](const char* name, const char* layer) {
    return layer_value(scaled, name, layer) / layer_value(plain, name, layer);
  };
  EXPECT_NEAR(ratio("norm_of_singular_values", "linear"), 15, 1e-9);
  EXPECT_NEAR(ratio("norm_alignment", "linear"), 1, 1e-9);
  EXPECT_NEAR(ratio("layer_top_singular_value", "linear"), 3, 1e-9);
  EXPECT_NEAR(ratio("weight_norm", "linear"), 3, 1e-9);
  EXPECT_NEAR(ratio("weight_stable_rank", "linear"), 1, 1e-9);
  EXPECT_NEAR(ratio("weight_rank", "linear"), 1, 0);
  EXPECT_NEAR(ratio("network_gain", ""), 3, 1e-9);
  EXPECT_NEAR(ratio("top_singular_share", ""), 1, 1e-9);
}

TEST(NormGrowth, IgnoresCommonRotations) {
  const auto weight = noise({4, 6}, 50);
  const auto input = noise({20, 6}, 51);
  const auto turn = random_rotation(6, 52);
  expect_same(grown(weight.matmul(turn), input.matmul(turn)), grown(weight, input), 1e-9);
}

TEST(NormGrowth, IgnoresTheOrderOfSamplesAndTheirSplitIntoBatches) {
  const auto record = small_network(12, 60);
  const auto whole = grown({record});
  expect_same(grown({samples_of(record, 0, 5), samples_of(record, 5, 12)}), whole, 1e-9);
  expect_same(grown({samples_of(record, torch::arange(12).flip(0))}), whole, 1e-9);
}

TEST(NormGrowth, LooksAtTheFirstSamplesOnly) {
  const auto record = small_network(12, 70);
  const Values values = {{"samples", 7}};
  const auto first = grown({samples_of(record, 0, 7)}, values);
  expect_same(grown({record}, values), first, 1e-12);
  expect_same(
      grown({samples_of(record, 0, 4), samples_of(record, 4, 10), samples_of(record, 10, 12)},
            values),
      first, 1e-9);
  EXPECT_EQ(first[0].definition["samples"], 7);
  EXPECT_EQ(make_measure("norm_growth", values)->needs().sample, 7);
}

TEST(NormGrowth, OfOneSampleAndFewerSamplesThanFeatures) {
  const auto weight = noise({4, 6}, 80);
  const auto input = noise({1, 6}, 81);
  const auto readings = grown(weight, input);
  const auto expected =
      torch::linalg_svdvals(weight)[0].item<double>() * input.norm().item<double>();
  EXPECT_NEAR(layer_value(readings, "norm_of_singular_values", "linear"), expected, 1e-9);
  EXPECT_NEAR(layer_value(readings, "norm_alignment", "linear"),
              weight.matmul(input[0]).norm().item<double>() / expected, 1e-9);
}

TEST(NormGrowth, OfZerosLeavesOutWhatIsUndefined) {
  const auto weightless = layer_of("weightless", torch::zeros({2, 3}), torch::ones({4, 3}));
  const auto dead = layer_of("dead", torch::ones({2, 3}), torch::zeros({4, 3}));
  auto readings = grown({record_with_layers({weightless, dead}, torch::ones({4, 2}))});
  for (const char* layer : {"weightless", "dead", ""}) {
    EXPECT_EQ(layer_value(readings, "norm_of_singular_values", layer), 0);
    EXPECT_FALSE(has_reading(readings, "norm_alignment", layer));
  }
  EXPECT_EQ(layer_value(readings, "weight_rank", "weightless"), 0);
  EXPECT_EQ(layer_value(readings, "weight_norm", "weightless"), 0);
  EXPECT_EQ(layer_value(readings, "layer_top_singular_value", "weightless"), 0);
  EXPECT_FALSE(has_reading(readings, "weight_stable_rank", "weightless"));
  EXPECT_NEAR(layer_value(readings, "weight_stable_rank", "dead"), 1, 1e-6);
  EXPECT_EQ(layer_value(readings, "top_singular_product"), 0);
  EXPECT_FALSE(has_reading(readings, "top_singular_share", ""));
  // No input, no gain; logits of zeros have one of 0.
  readings = grown({record_with_layers({dead}, torch::ones({4, 2}))});
  EXPECT_FALSE(has_reading(readings, "network_gain", ""));
  readings = grown({record_with_layers({dead}, torch::zeros({4, 2}))});
  EXPECT_FALSE(has_reading(readings, "network_gain", ""));
  readings = grown({record_with_layers({weightless}, torch::zeros({4, 2}))});
  EXPECT_EQ(layer_value(readings, "network_gain"), 0);
  EXPECT_FALSE(has_reading(readings, "top_singular_share", ""));
}

TEST(NormGrowth, CountsItsMemory) {
  const auto record = small_network(4, 90);
  // Inputs of 3 * 6 * 5 doubles, logits of 3 classes.
  const int64_t grams = make_measure("alignment")->memory(record, 100);
  EXPECT_EQ(make_measure("norm_growth")->memory(record, 100), grams + 8 * 9 + 100 * 90 * 8);
  EXPECT_EQ(make_measure("norm_growth")->memory(record, 100'000), grams + 8 * 9 + 512 * 90 * 8);
}

TEST(NormGrowth, RejectsWhatItCannotMeasure) {
  auto record = small_network(4, 95);
  record.logits[1][2] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(error_of([&] { grown({record}); }),
            "norm_growth: logits must be finite, have a NaN or an infinity");
  record = small_network(4, 96);
  record.layers[0].weight = record.layers[0].weight * std::nan("");
  EXPECT_EQ(error_of([&] { grown({record}); }),
            "norm_growth: weight of layer 'conv' must be finite, has a NaN or an infinity");
  EXPECT_EQ(error_of([] {
              make_measure("norm_growth", {{"gamma", 0}});
            }),
            "measure.norm_growth.gamma: must be in (0, 1), got 0");
  EXPECT_EQ(error_of([] { grown(std::vector<Record>{}); }),
            "norm_growth: no sample of the test split was shown");
}

}  // namespace kelvin::norm_growth_test
