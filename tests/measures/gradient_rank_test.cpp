#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <vector>

#include "kelvin/ops/layer_matrices.h"
#include "tests/support/errors.h"
#include "tests/support/layer_records.h"
#include "tests/support/measured.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::gradient_rank_test {

// A layer with the gradient of `loss` of its product in its weight.
template <class Loss>
LayerRecord trained_layer(const std::string& name, const torch::Tensor& weight,
                          const torch::Tensor& input, const Loss& loss, int64_t stride = 1,
                          int64_t padding = 0) {
  auto leaf = weight.clone().requires_grad_();
  auto layer = layer_of(name, leaf, input, stride, padding);
  loss(layer.pre_activation).backward();
  layer.gradient = leaf.grad();
  return layer;
}

torch::Tensor cross_entropy(const torch::Tensor& product) {
  const auto logits = product.dim() == 4 ? product.mean({2, 3}) : product;
  const auto labels = torch::arange(logits.size(0)) % logits.size(1);
  return torch::nn::functional::cross_entropy(logits, labels);
}

torch::Tensor mean_of_squares(const torch::Tensor& product) {
  return (product - noise(product.sizes().vec(), 77)).square().mean();
}

LayerRecord layer_with_gradient(const std::string& name, const torch::Tensor& input,
                                const torch::Tensor& gradient) {
  auto layer = layer_of(name, torch::ones_like(gradient), input);
  layer.gradient = gradient;
  return layer;
}

Readings ranked(const std::vector<LayerRecord>& layers, const Values& values = {}) {
  const auto measure = make_measure("gradient_rank", values);
  measure->see_gradients(record_with_layers(layers));
  return measure->compute();
}

int64_t exact_rank(const torch::Tensor& matrix) {
  const auto values = torch::linalg_svdvals(matrix);
  return (values > 1e-10 * values[0]).sum().item<int64_t>();
}

torch::Tensor low_rank_rows(int64_t rows, int64_t dims, int64_t rank, uint64_t seed) {
  return noise({rows, rank}, seed).matmul(noise({rank, dims}, seed + 1));
}

// Maps that are all mixtures of a few, so that patches are too.
torch::Tensor low_rank_maps(int64_t samples, int64_t channels, int64_t rank, uint64_t seed) {
  return low_rank_rows(samples, channels * 3 * 3, rank, seed).view({samples, channels, 3, 3});
}

TEST(GradientRank, OfUnitMatricesIsTheirSize) {
  const auto readings = ranked({layer_with_gradient("linear", torch::diag(doubles({5, 1, 1e-4})),
                                                    torch::diag(doubles({4, 2e-3, 0})))});
  EXPECT_EQ(layer_value(readings, "gradient_rank", "linear"), 1);
  EXPECT_EQ(layer_value(readings, "activation_rank", "linear"), 2);
  EXPECT_EQ(layer_value(readings, "gradient_rank_violations", ""), 0);
  const auto values = readings_of(readings, "gradient_singular_value");
  ASSERT_EQ(values.size(), 3U);
  EXPECT_NEAR(values[0].value, 4, 1e-12);
  EXPECT_NEAR(values[1].value, 2e-3, 1e-12);
  EXPECT_NEAR(values[2].value, 0, 1e-12);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(values[i].index, i);
}

TEST(GradientRank, IfExactNeverExceedsThatOfTheInput) {
  int64_t seed = 100;
  for (const int64_t rank : {1, 2, 4, 7}) {
    for (const auto& loss : {cross_entropy, mean_of_squares}) {
      seed += 10;
      // A convolution whose kernel covers the map sees each sample as one patch of low rank.
      const std::vector<LayerRecord> layers = {
          trained_layer("linear", noise({9, 12}, seed), low_rank_rows(30, 12, rank, seed + 1),
                        loss),
          trained_layer("conv", noise({9, 4, 3, 3}, seed + 3), low_rank_maps(30, 4, rank, seed + 4),
                        loss),
          trained_layer("padded", noise({9, 4, 3, 3}, seed + 5),
                        low_rank_maps(30, 4, rank, seed + 6), loss, 2, 1)};
      for (const auto& layer : layers) {
        const auto inputs = input_matrix(layer.weight, layer.input,
                                         {.stride = layer.stride, .padding = layer.padding});
        const auto of_gradient = exact_rank(weight_matrix(layer.gradient));
        EXPECT_LE(of_gradient, exact_rank(inputs)) << layer.name;
        EXPECT_GT(of_gradient, 0) << layer.name;
      }
      for (const auto& layer : {layers[0], layers[1]}) {
        EXPECT_LE(exact_rank(weight_matrix(layer.gradient)), rank) << layer.name;
      }
    }
  }
}

TEST(GradientRank, ReachesTheBoundWhereTheLossAsksForEverything) {
  for (const int64_t rank : {1, 3, 5}) {
    const auto readings = ranked({trained_layer("linear", noise({9, 12}, 1),
                                                low_rank_rows(30, 12, rank, 2), mean_of_squares),
                                  trained_layer("conv", noise({9, 4, 3, 3}, 3),
                                                low_rank_maps(30, 4, rank, 4), mean_of_squares)},
                                 {{"gamma", 1e-6}});
    for (const char* layer : {"linear", "conv"}) {
      EXPECT_EQ(layer_value(readings, "gradient_rank", layer), rank);
      EXPECT_EQ(layer_value(readings, "activation_rank", layer), rank);
    }
    EXPECT_EQ(layer_value(readings, "gradient_rank_violations", ""), 0);
  }
}

// The counterexample: the bound of exact rank does not hold for numerical rank.
TEST(GradientRank, IfNumericalCanExceedThatOfTheInput) {
  // Three samples, each in a direction of its own, 1, 1e-2 and 1e-4 long.
  const auto input = torch::diag(doubles({1, 1e-2, 1e-4}));
  // A regression onto targets that are the larger the smaller the sample is, from zero weights.
  const auto targets = torch::diag(doubles({1e-4, 1e-2, 1}));
  const auto loss = [&](const torch::Tensor& product) {
    return (product - targets).square().sum() / 2;
  };
  const auto layer = trained_layer("linear", torch::zeros({3, 3}, torch::kFloat64), input, loss);
  // dL/dW = (dL/dZ) A^T = -targets * input = -1e-4 times the unit matrix.
  expect_close(layer.gradient, -1e-4 * torch::eye(3, torch::kFloat64), 1e-18);
  const auto readings = ranked({layer});
  EXPECT_EQ(layer_value(readings, "activation_rank", "linear"), 2);
  EXPECT_EQ(layer_value(readings, "gradient_rank", "linear"), 3);
  EXPECT_EQ(layer_value(readings, "gradient_rank_violations", ""), 1);
  EXPECT_EQ(exact_rank(layer.gradient), exact_rank(input));
}

TEST(GradientRank, CountsViolationsOverLayers) {
  const auto narrow = torch::diag(doubles({1, 1e-5, 1e-5}));
  const auto wide = torch::eye(3, torch::kFloat64);
  const auto readings =
      ranked({layer_with_gradient("a", narrow, wide), layer_with_gradient("b", wide, narrow),
              layer_with_gradient("c", narrow, wide), layer_with_gradient("d", wide, wide)});
  EXPECT_EQ(readings[0].name, "gradient_rank_violations");
  EXPECT_EQ(readings[0].value, 2);
  EXPECT_EQ(readings[0].definition["layers"], 4);
  EXPECT_TRUE(readings[0].definition.contains("matrix"));
  EXPECT_TRUE(readings[0].definition.contains("precision"));
}

TEST(GradientRank, AgreesWithNumPyInEveryReading) {
  const auto fading = [](int64_t dims) {
    return torch::logspace(0, -5, dims, 10, torch::kFloat64);
  };
  auto record = record_with_layers(
      {layer_of("conv", noise({6, 3, 3, 3}, 10), noise({5, 3, 6, 6}, 11), 2, 1),
       layer_of("tokens", noise({7, 10}, 12), noise({5, 4, 10}, 13) * fading(10)),
       layer_of("linear", noise({4, 20}, 14), noise({5, 20}, 15) * fading(20))});
  NamedTensors inputs;
  for (auto& layer : record.layers) {
    const auto flat = noise(weight_matrix(layer.weight).sizes().vec(), 16);
    layer.gradient = (flat * fading(flat.size(1))).view(layer.weight.sizes()).to(torch::kFloat32);
    layer.input = layer.input.to(torch::kFloat32);
    inputs[layer.name + "/w"] = layer.weight;
    inputs[layer.name + "/a"] = layer.input;
    inputs[layer.name + "/g"] = layer.gradient;
  }
  const auto expected = oracle(std::string(kLayerMatricesInPython) + R"(
for name, stride, padding in (("conv", 2, 1), ("tokens", 1, 0), ("linear", 1, 0)):
    g = np.linalg.svd(weight_matrix(x[name + "/g"]), compute_uv=False)
    a = input_matrix(x[name + "/w"], x[name + "/a"], stride, padding)
    s = np.linalg.svd(a, compute_uv=False)
    out[name + "/gradient"], out[name + "/input"] = g, s
    out[name + "/ranks"] = np.array([np.sum(g > 1e-2 * g[0]), np.sum(s > 1e-2 * s[0]), a.shape[1]])
)",
                               inputs);
  const auto measure = make_measure("gradient_rank", {{"gamma", 1e-2}});
  measure->see_gradients(record);
  const auto readings = measure->compute();
  const auto curves = measure->curves();
  int64_t violations = 0;
  for (const auto& layer : record.layers) {
    const auto& ranks = expected.at(layer.name + "/ranks");
    const auto& gradient = expected.at(layer.name + "/gradient");
    const auto& input = expected.at(layer.name + "/input");
    EXPECT_EQ(layer_value(readings, "gradient_rank", layer.name), ranks[0].item<int64_t>());
    EXPECT_EQ(layer_value(readings, "activation_rank", layer.name), ranks[1].item<int64_t>());
    EXPECT_EQ(layer_reading(readings, "activation_rank", layer.name).definition["columns"],
              ranks[2].item<int64_t>());
    violations += (ranks[0] > ranks[1]).item<bool>();
    expect_close(curves.at("gradient_spectrum/" + layer.name), gradient,
                 1e-12 * gradient[0].item<double>());
    // Squaring costs half of the digits.
    expect_close(curves.at("activation_spectrum/" + layer.name), input,
                 1e-7 * input[0].item<double>());
  }
  EXPECT_EQ(readings[0].value, violations);
}

TEST(GradientRank, HasTheBoundsThatSizesGive) {
  // The convolution sees 5 samples in 9 positions each; the linear layer only 5 columns.
  const auto readings = ranked(
      {trained_layer("conv", noise({6, 3, 3, 3}, 20), noise({5, 3, 5, 5}, 21), mean_of_squares),
       trained_layer("linear", noise({9, 8}, 22), noise({5, 8}, 23), mean_of_squares)},
      {{"gamma", 1e-6}});
  const auto expect_at_bound = [&](const char* name, const char* layer, int64_t bound) {
    const auto reading = layer_reading(readings, name, layer);
    EXPECT_EQ(reading.definition["upper_bound"], bound) << name << " " << layer;
    EXPECT_EQ(reading.value, bound) << name << " " << layer;
  };
  expect_at_bound("gradient_rank", "conv", 6);
  expect_at_bound("activation_rank", "conv", 27);
  expect_at_bound("gradient_rank", "linear", 5);
  expect_at_bound("activation_rank", "linear", 5);
}

TEST(GradientRank, IgnoresScaleRotationsAndTheOrderOfSamples) {
  const auto fading = torch::logspace(0, -5, 10, 10, torch::kFloat64);
  const auto input = noise({30, 10}, 30) * fading;
  const auto gradient = noise({9, 10}, 31) * fading;
  const auto ranks_of = [](const Readings& readings) {
    return std::vector<double>{layer_value(readings, "gradient_rank", "linear"),
                               layer_value(readings, "activation_rank", "linear")};
  };
  const auto plain = ranks_of(ranked({layer_with_gradient("linear", input, gradient)}));
  EXPECT_GT(plain[0], 1);
  EXPECT_LT(plain[0], 9);
  EXPECT_LT(plain[1], 10);
  const auto turn = random_rotation(10, 32);
  const auto turned =
      layer_with_gradient("linear", 1e9 * input.flip(0).matmul(turn), 1e-9 * gradient.matmul(turn));
  EXPECT_EQ(ranks_of(ranked({turned})), plain);
}

TEST(GradientRank, OfZerosIsZero) {
  const auto zeros = torch::zeros({4, 3}, torch::kFloat64);
  const auto readings = ranked({layer_with_gradient("still", noise({5, 3}, 40), zeros),
                                layer_with_gradient("dead", torch::cat({zeros, zeros}), zeros)});
  EXPECT_EQ(layer_value(readings, "gradient_rank", "still"), 0);
  EXPECT_EQ(layer_value(readings, "activation_rank", "still"), 3);
  EXPECT_EQ(layer_value(readings, "gradient_rank", "dead"), 0);
  EXPECT_EQ(layer_value(readings, "activation_rank", "dead"), 0);
  EXPECT_EQ(readings[0].value, 0);
}

TEST(GradientRank, OfOneSampleIsAtMostOne) {
  const auto readings =
      ranked({trained_layer("linear", noise({4, 6}, 50), noise({1, 6}, 51), mean_of_squares)});
  EXPECT_EQ(layer_value(readings, "gradient_rank", "linear"), 1);
  EXPECT_EQ(layer_value(readings, "activation_rank", "linear"), 1);
}

TEST(GradientRank, ShowsTheFiveLargestSingularValues) {
  const auto gradient = torch::diag(doubles({1, 7, 2, 6, 3, 5, 4}));
  const auto readings = ranked({layer_with_gradient("linear", noise({9, 7}, 60), gradient)});
  const auto values = readings_of(readings, "gradient_singular_value");
  ASSERT_EQ(values.size(), 5U);
  for (int64_t i = 0; i < 5; ++i) EXPECT_NEAR(values[i].value, 7.0 - static_cast<double>(i), 1e-12);
  EXPECT_FALSE(values[0].definition.contains("gamma"));
}

TEST(GradientRank, BelongsToTheSplitOfItsBatch) {
  auto record =
      record_with_layers({layer_with_gradient("linear", noise({4, 3}, 70), noise({2, 3}, 71))});
  record.split = Split::train;
  const auto measure = make_measure("gradient_rank");
  measure->see_gradients(record);
  for (const auto& reading : measure->compute()) {
    EXPECT_EQ(reading.split, "train");
    EXPECT_EQ(reading.definition["samples"], 4);
  }
}

TEST(GradientRank, RejectsWhatItCannotRank) {
  const auto message_of = [](const LayerRecord& layer) {
    return error_of([&] { ranked({layer}); });
  };
  const auto plain = layer_with_gradient("linear", noise({4, 3}, 80), noise({2, 3}, 81));
  auto layer = plain;
  layer.gradient = torch::Tensor();
  EXPECT_EQ(message_of(layer),
            "gradient_rank: layer 'linear' must have a gradient of the size of its weight, [2, 3], "
            "has none");
  layer.gradient = noise({3, 2}, 82);
  EXPECT_EQ(message_of(layer),
            "gradient_rank: layer 'linear' must have a gradient of the size of its weight, [2, 3], "
            "has [3, 2]");
  layer = plain;
  layer.gradient = plain.gradient / 0;
  EXPECT_EQ(message_of(layer),
            "gradient_rank: gradient of layer 'linear' must be finite, has a NaN or an infinity");
  layer = plain;
  layer.input = plain.input * std::nan("");
  EXPECT_EQ(message_of(layer),
            "gradient_rank: input of layer 'linear' must be finite, has a NaN or an infinity");
  layer.input = layer.input.slice(0, 0, 0);
  EXPECT_EQ(message_of(layer),
            "gradient_rank: layer 'linear' must have seen a sample, has seen none");
  EXPECT_EQ(error_of([] {
              make_measure("gradient_rank")
                  ->see_gradients(record_of(torch::zeros({2, 3}), torch::zeros({2})));
            }),
            "gradient_rank: records must have layers, got none");
}

TEST(GradientRank, RejectsAGammaThatRoundingWouldFill) {
  for (const char* gamma : {"1e-07", "1"}) {
    EXPECT_EQ(error_of([&] {
                make_measure("gradient_rank", {{"gamma", std::stod(gamma)}});
              }),
              std::string("measure.gradient_rank.gamma: must be in [1e-06, 1), got ") + gamma);
  }
}

}  // namespace kelvin::gradient_rank_test
