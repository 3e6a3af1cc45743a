#include "kelvin/measures/input_gram.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <string>

#include "kelvin/ops/layer_matrices.h"
#include "tests/support/errors.h"
#include "tests/support/layer_records.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::input_gram_test {

InputGrams make_grams(const Values& values = {}) {
  Settings settings("measure.some", values);
  return {"some", settings};
}

InputGrams grams_of(const std::vector<Record>& records, const Values& values = {}) {
  auto grams = make_grams(values);
  for (const auto& record : records) grams.see(record);
  return grams;
}

void expect_same_grams(const InputGrams& actual, const InputGrams& expected) {
  ASSERT_EQ(actual.layers().size(), expected.layers().size());
  EXPECT_EQ(actual.seen(), expected.seen());
  for (size_t i = 0; i < expected.layers().size(); ++i) {
    EXPECT_EQ(actual.layers()[i].columns(), expected.layers()[i].columns());
    expect_close(actual.layers()[i].input_gram(), expected.layers()[i].input_gram(), 1e-10);
  }
}

TEST(InputGrams, AreThoseOfNumPy) {
  const auto record = small_network(6, 1);
  NamedTensors inputs;
  for (const auto& layer : record.layers) {
    inputs[layer.name + "/w"] = layer.weight;
    inputs[layer.name + "/a"] = layer.input;
  }
  const auto expected = oracle(std::string(kLayerMatricesInPython) + R"(
for name, stride, padding in (("conv", 2, 1), ("tokens", 1, 0), ("linear", 1, 0)):
    a = input_matrix(x[name + "/w"], x[name + "/a"], stride, padding)
    out[name + "/w"] = weight_matrix(x[name + "/w"])
    out[name] = a @ a.T
)",
                               inputs);
  const auto grams = grams_of({record});
  ASSERT_EQ(grams.layers().size(), 3U);
  for (const auto& layer : grams.layers()) {
    expect_close(layer.input_gram(), expected.at(layer.name), 1e-10);
    expect_close(layer.weight, expected.at(layer.name + "/w"), 0);
    EXPECT_EQ(layer.stride, 1);
  }
  EXPECT_EQ(grams.layers()[0].columns(), 6 * 3 * 3);
  EXPECT_EQ(grams.layers()[1].columns(), 6 * 7);
  EXPECT_EQ(grams.layers()[2].columns(), 6);
}

TEST(InputGrams, GiveTheProductsOfTheLayer) {
  const auto record = small_network(6, 2);
  const auto grams = grams_of({record});
  for (size_t i = 0; i < record.layers.size(); ++i) {
    const auto& layer = grams.layers()[i];
    const auto product = product_matrix(record.layers[i].weight, record.layers[i].pre_activation);
    expect_close(layer.weight.matmul(layer.input_gram()).matmul(layer.weight.t()),
                 product.matmul(product.t()), 1e-9);
  }
}

TEST(InputGrams, TakeTheFirstSamplesHoweverTheyAreSplit) {
  const auto record = small_network(12, 3);
  // 3 of 9 positions, 3 of 7 tokens: columns are left out, and which ones is not a matter of
  // batches.
  const Values values = {{"samples", 8}, {"positions", 24}};
  const auto whole = grams_of({record}, values);
  EXPECT_EQ(whole.layers()[0].stride, 3);
  EXPECT_EQ(whole.layers()[1].stride, 3);
  EXPECT_EQ(whole.layers()[2].stride, 1);
  EXPECT_EQ(whole.seen(), 8);
  expect_same_grams(grams_of({samples_of(record, 0, 8)}, values), whole);
  expect_same_grams(grams_of({samples_of(record, 0, 1), samples_of(record, 1, 6),
                              samples_of(record, 6, 10), samples_of(record, 10, 12)},
                             values),
                    whole);
}

TEST(InputGrams, UseEveryPositionEquallyOften) {
  // Token i is the i-th unit vector, so that the Gram matrix counts how often it was used.
  for (const int64_t stride : {1, 2, 3, 6}) {
    const auto record = record_with_layers(
        {layer_of("tokens", torch::ones({1, 6}), torch::eye(6).repeat({6, 1, 1}))});
    const auto grams = grams_of({record}, {{"samples", 6}, {"positions", 36 / stride}});
    const auto& layer = grams.layers()[0];
    EXPECT_EQ(layer.stride, stride);
    EXPECT_EQ(layer.columns(), 36 / stride);
    expect_close(layer.input_gram(), 6.0 / stride * torch::eye(6), 1e-12);
  }
}

TEST(InputGrams, UseColumnsOfTheInputMatrix) {
  // A map that is higher than wide, a kernel that is wider than high.
  const auto layer = layer_of("conv", noise({2, 3, 2, 3}, 20), noise({4, 3, 9, 6}, 21), 2, 1);
  const auto grams = grams_of({record_with_layers({layer})}, {{"samples", 4}, {"positions", 24}});
  const auto inputs = input_matrix(layer.weight, layer.input, {.stride = 2, .padding = 1});
  const int64_t positions = inputs.size(1) / 4;
  ASSERT_EQ(positions, 5 * 3);
  std::vector<int64_t> used;
  for (int64_t i = 0; i < 4; ++i) {
    for (auto j = i % 3; j < positions; j += 3) used.push_back(i * positions + j);
  }
  const auto expected = inputs.index_select(1, labels_of(used));
  EXPECT_EQ(grams.layers()[0].columns(), expected.size(1));
  expect_close(grams.layers()[0].input_gram(), expected.matmul(expected.t()), 1e-10);
}

TEST(InputGrams, NeverUseMoreColumnsThanAsked) {
  for (const int64_t positions : {5, 9, 11, 17, 23, 1000}) {
    const auto grams = grams_of({small_network(5, 4)}, {{"samples", 5}, {"positions", positions}});
    for (const auto& layer : grams.layers()) EXPECT_LE(layer.columns(), positions);
  }
}

TEST(InputGrams, LookAtLargeMapsAFewSamplesAtATime) {
  // Twice as many numbers as are gathered at once, half of the positions: the last sample is apart.
  LayerRecord layer;
  layer.name = "conv";
  layer.weight = torch::ones({1, 8, 1, 1});
  layer.input = torch::rand({17, 8, 256, 256}, at::make_generator<at::CPUGeneratorImpl>(5));
  constexpr int64_t kUsed = 256 * 256 / 2;
  const auto grams =
      grams_of({record_with_layers({layer})}, {{"samples", 17}, {"positions", 17 * kUsed}});
  auto expected = torch::zeros({8, 8}, torch::kFloat64);
  for (int64_t i = 0; i < 17; ++i) {
    const auto used = layer.input[i].flatten(1).slice(1, i % 2, c10::nullopt, 2);
    expected += used.to(torch::kFloat64).matmul(used.to(torch::kFloat64).t());
  }
  EXPECT_EQ(grams.layers()[0].stride, 2);
  EXPECT_EQ(grams.layers()[0].columns(), 17 * kUsed);
  expect_close(grams.layers()[0].input_gram(), expected, 1e-6);
}

TEST(InputGrams, KnowLayersOfZeros) {
  const auto grams = grams_of({record_with_layers(
      {layer_of("plain", noise({2, 3}, 6), noise({4, 3}, 7)),
       layer_of("weightless", torch::zeros({2, 3}), noise({4, 3}, 8).to(torch::kFloat32)),
       layer_of("dead", torch::ones({2, 3}), torch::zeros({4, 3}))})});
  EXPECT_FALSE(grams.layers()[0].has_zero_weight() || grams.layers()[0].has_zero_input());
  EXPECT_TRUE(grams.layers()[1].has_zero_weight());
  EXPECT_FALSE(grams.layers()[1].has_zero_input());
  EXPECT_TRUE(grams.layers()[2].has_zero_input());
  EXPECT_FALSE(grams.layers()[2].has_zero_weight());
}

TEST(InputGrams, KeepTheWeightsTheySaw) {
  auto weight = torch::ones({2, 3}, torch::kFloat64).requires_grad_();
  auto record = record_with_layers({layer_of("linear", weight, noise({4, 3}, 9))});
  const auto grams = grams_of({record});
  weight.detach().zero_();
  expect_close(grams.layers()[0].weight, torch::ones({2, 3}), 0);
  EXPECT_FALSE(grams.layers()[0].weight.requires_grad());
}

TEST(InputGrams, MergeToTheOneSampleThatBothSaw) {
  const auto record = small_network(6, 10);
  const auto seen = grams_of({record});
  auto merged = make_grams();
  merged.merge(seen);
  expect_same_grams(merged, seen);
  merged.merge(seen);
  expect_same_grams(merged, seen);
}

TEST(InputGrams, SayWhatTheInputIs) {
  const auto grams = grams_of({small_network(5, 11)}, {{"samples", 5}, {"positions", 20}});
  const auto definition = grams.definition(grams.layers()[0]);
  EXPECT_EQ(definition["samples"], 5);
  EXPECT_EQ(definition["positions"], 20);
  EXPECT_EQ(definition["position_stride"], 3);
  EXPECT_EQ(definition["columns"], 15);
  EXPECT_EQ(definition["centring"], "none");
}

TEST(InputGrams, CountTheirMemory) {
  const auto record = record_with_layers({layer_of("wide", noise({2, 30}, 12), noise({4, 30}, 13)),
                                          layer_of("slim", noise({5, 2}, 14), noise({4, 2}, 15))});
  EXPECT_EQ(make_grams().memory("some", record),
            8 * (30 * 30 + 2 * 30 + 2 * 2 + 5 * 2) + 8 * 30 * 30);
  int64_t held = 0;
  for (const auto& [name, tensor] : grams_of({record}).state()) held += tensor.nbytes();
  EXPECT_LE(held, make_grams().memory("some", record));
}

TEST(InputGrams, AreMadeOnceForAllWhoWantTheSame) {
  SharedInputGrams shared;
  const auto grams_for = [&](const std::string& measure, const Values& values) {
    Settings settings("measure." + measure, values);
    return input_grams_of(
        {.input_grams = std::shared_ptr<SharedInputGrams>(&shared, [](SharedInputGrams*) {})},
        measure, settings);
  };
  const auto first = grams_for("first", {{"samples", 4}});
  const auto second = grams_for("second", {{"samples", 4}});
  EXPECT_EQ(first, second);
  EXPECT_NE(first, grams_for("third", {{"samples", 5}}));
  const auto record = small_network(3, 1);
  const auto next = small_network(3, 5);
  for (const auto& shown : {record, next}) {
    const auto count = first->see(shown);
    EXPECT_EQ(second->see(shown), count);
  }
  expect_same_grams(*first, grams_of({record, next}, {{"samples", 4}}));
  // Memory is counted once.
  EXPECT_GT(first->memory("first", record), 0);
  EXPECT_EQ(second->memory("second", record), 0);
}

TEST(InputGrams, RejectWhatHasNone) {
  const auto message_of = [](const std::vector<Record>& records) {
    return error_of([&] { grams_of(records); });
  };
  EXPECT_EQ(message_of({record_of(torch::zeros({2, 3}), torch::zeros({2}))}),
            "some: records must have layers, got none");
  auto record = small_network(4, 16);
  record.layers[1].input[3][2][1] = std::nan("");
  EXPECT_EQ(message_of({record}),
            "some: input of layer 'tokens' must be finite, has a NaN or an infinity");
  record = small_network(4, 17);
  record.layers[0].weight = record.layers[0].weight / 0;
  EXPECT_EQ(message_of({record}),
            "some: weight of layer 'conv' must be finite, has a NaN or an infinity");
  record = small_network(4, 18);
  auto other = record;
  other.logits = record.logits.clone();
  other.layers.pop_back();
  EXPECT_EQ(message_of({record, other}),
            "some: records must have 3 layers as the first has, got 2");
  other = record;
  other.logits = record.logits.clone();
  other.layers[2].name = "head";
  EXPECT_EQ(message_of({record, other}),
            "some: layer 'linear' must come in the same place in all records, got 'head'");
  record.layers[2].input = record.layers[2].input.slice(0, 0, 3);
  EXPECT_EQ(message_of({record}),
            "some: input of layer 'linear' must have a row for each of 4 samples, has 3");
}

TEST(InputGrams, RejectSettingsOutOfRange) {
  EXPECT_EQ(error_of([] {
              make_grams({{"samples", 0}});
            }),
            "measure.some.samples: must be at least 1, got 0");
  EXPECT_EQ(error_of([] {
              make_grams({{"samples", 10}, {"positions", 9}});
            }),
            "measure.some.positions: must be at least one per sample (10), got 9");
}

}  // namespace kelvin::input_gram_test
