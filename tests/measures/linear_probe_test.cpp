#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/probe_records.h"

namespace kelvin::linear_probe_test {

NamedTensors measured_curves(const std::vector<Record>& records, bool keep_weights) {
  const auto measure = make_measure("linear_probe", {{"keep_weights", keep_weights}});
  show(*measure, records);
  return measure->curves();
}

TEST(LinearProbe, IsPerfectOnSeparableFeaturesAndGuessesOnBlindOnes) {
  const auto accuracies = accuracies_of(measured("linear_probe", tunnel()));
  expect_close(doubles(accuracies), doubles({1. / 3, 1, 1}), 1e-12);
}

TEST(LinearProbe, NamesLayersInOrderOfExecution) {
  std::vector<std::string> layers;
  for (const auto& reading : readings_of(measured("linear_probe", tunnel()), "probe_accuracy")) {
    if (reading.ood.empty()) layers.push_back(reading.layer);
  }
  EXPECT_EQ(layers, (std::vector<std::string>{"first", "second", "last"}));
}

TEST(LinearProbe, KappaIsTheEffectiveDepthOfItsAccuracies) {
  const auto readings = measured("linear_probe", tunnel());
  const auto accuracies = accuracies_of(readings);
  const double kappa = reading_of(readings, "kappa", {{"last_layer", "logits"}}).value;
  EXPECT_DOUBLE_EQ(kappa, effective_depth(accuracies, 3, 0.99));
  EXPECT_DOUBLE_EQ(kappa, 2. / 3);
  const double penultimate = reading_of(readings, "kappa", {{"last_layer", "penultimate"}}).value;
  EXPECT_DOUBLE_EQ(penultimate, effective_depth(accuracies, 2, 0.99));
  EXPECT_DOUBLE_EQ(penultimate, 1);
}

TEST(LinearProbe, KappaHeedsTheThreshold) {
  const auto readings = measured("linear_probe", tunnel(), {{"threshold", 0.3}});
  EXPECT_DOUBLE_EQ(
      reading_of(readings, "kappa", {{"last_layer", "logits"}, {"threshold", 0.3}}).value, 1. / 3);
}

TEST(LinearProbe, OodSamplesAreProbedForTheirOwnClasses) {
  const auto readings = measured("linear_probe", tunnel(/*ood_classes=*/5));
  expect_close(doubles(accuracies_of(readings, "textures")), doubles({1, 1, 1. / 5}), 1e-12);
  const auto rho = reading_of(readings, "rho");
  EXPECT_DOUBLE_EQ(rho.value, 4. / 5);
  EXPECT_EQ(rho.ood, "textures");
  EXPECT_DOUBLE_EQ(rho.value, generalisation_drop(accuracies_of(readings, "textures")));
  EXPECT_DOUBLE_EQ(reading_of(readings, "ood_retained").value, 1. / 5);
}

TEST(LinearProbe, OodSamplesDoNotTouchTheOthers) {
  std::vector<Record> home;
  for (const auto& record : tunnel()) {
    if (!record.is_ood()) home.push_back(record);
  }
  const auto alone = measured("linear_probe", home);
  const auto together = measured("linear_probe", tunnel());
  EXPECT_EQ(accuracies_of(alone), accuracies_of(together));
  EXPECT_TRUE(readings_of(alone, "rho").empty());
}

TEST(LinearProbe, IgnoresTheScaleOfEachFeature) {
  const auto records = noisy_layer();
  auto scaled = records;
  const auto scale = torch::tensor({1024.F, 1.F, 1.F / 4096});
  for (auto& record : scaled) record.layers[0].output = record.layers[0].output * scale;
  const auto expected = measured("linear_probe", records);
  const auto accuracy = accuracies_of(expected).at(0);
  EXPECT_GT(accuracy, 0.4);
  EXPECT_LT(accuracy, 1);
  expect_same(measured("linear_probe", scaled), expected);
}

TEST(LinearProbe, MergedFromTwoHalvesIsThatOfTheWhole) {
  std::vector<Record> halves[2];
  for (const auto& record : noisy_layer()) {
    const auto middle = record.labels.size(0) / 3;
    for (const int64_t half : {0, 1}) {
      const auto part = [&](const torch::Tensor& tensor) {
        return half == 0 ? tensor.slice(0, 0, middle) : tensor.slice(0, middle);
      };
      halves[half].push_back(probe_record(record.split, part(record.labels),
                                          {{"only", part(record.layers[0].output)}}));
    }
  }
  const auto first = make_measure("linear_probe");
  const auto second = make_measure("linear_probe");
  for (const auto& record : halves[0]) first->update(record);
  for (const auto& record : halves[1]) second->update(record);
  auto merged = make_measure("linear_probe");
  merged->merge(*first);
  merged->merge(*second);
  expect_same(merged->compute(), measured("linear_probe", noisy_layer()));
}

// Whole numbers, so that averages are exact.
torch::Tensor maps(const torch::Tensor& labels, uint64_t seed) {
  const auto signal = 3 * torch::one_hot(labels, 3).narrow(1, 0, 2).view({-1, 2, 1, 1});
  return (signal + 9 * noise({labels.size(0), 2, 4, 4}, seed)).round().to(torch::kFloat32);
}

TEST(LinearProbe, AveragesFeatureMaps) {
  const auto train = maps(labels_for(Split::train, 3), 3);
  const auto test = maps(labels_for(Split::test, 3), 4);
  const auto by_hand = [](const torch::Tensor& output) {
    return output.view({-1, 2, 2, 2, 2, 2}).mean({3, 5}).flatten(1);
  };
  const auto readings = measured("linear_probe", one_layer(train, test));
  EXPECT_LT(accuracies_of(readings).at(0), 1);
  expect_same(readings, measured("linear_probe", one_layer(by_hand(train), by_hand(test))));
}

TEST(LinearProbe, PoolSaysHowMuchOfTheMapsRemains) {
  // The class is which quadrant is lit: seen at 2 x 2, gone at 1 x 1.
  const auto lit = [](Split split) {
    const auto labels = labels_for(split, 3);
    auto output = torch::zeros({labels.size(0), 1, 6, 6});
    for (int64_t i = 0; i < labels.size(0); ++i) {
      const auto quadrant = labels[i].item<int64_t>();
      output[i][0].narrow(0, 3 * (quadrant / 2), 3).narrow(1, 3 * (quadrant % 2), 3).fill_(1);
    }
    return output;
  };
  const auto records = one_layer(lit(Split::train), lit(Split::test));
  EXPECT_EQ(accuracies_of(measured("linear_probe", records)).at(0), 1);
  EXPECT_DOUBLE_EQ(accuracies_of(measured("linear_probe", records, {{"pool", 1}})).at(0), 1. / 3);
}

TEST(LinearProbe, TakesMapsSmallerThanThePool) {
  const auto records = noisy_layer();
  auto as_maps = records;
  for (auto& record : as_maps) {
    record.layers[0].output = record.layers[0].output.view({-1, 3, 1, 1});
  }
  expect_same(measured("linear_probe", as_maps), measured("linear_probe", records));
}

TEST(LinearProbe, AveragesTokens) {
  const auto records = noisy_layer();
  auto as_tokens = records;
  for (auto& record : as_tokens) {
    const auto& output = record.layers[0].output;
    record.layers[0].output = torch::stack({output * 0.5, output * 1.5}, 1);
  }
  expect_same(measured("linear_probe", as_tokens), measured("linear_probe", records));
}

TEST(LinearProbe, SaysWhichPenaltyItChose) {
  const auto readings = measured("linear_probe", noisy_layer(), {{"l2", {0.25}}});
  const auto definition = reading_of(readings, "probe_accuracy").definition;
  EXPECT_EQ(definition["l2_candidates"], Value({0.25}));
  EXPECT_EQ(definition["l2"], 0.25);
}

TEST(LinearProbe, RejectsAMissingSplit) {
  const auto records = tunnel();
  for (const auto& record : records) {
    EXPECT_EQ(error_of([&] { measured("linear_probe", {record}); }),
              std::string("linear_probe: needs both splits of ") +
                  (record.is_ood() ? "textures" : "the trained dataset"));
  }
}

TEST(LinearProbe, RejectsRecordsWithoutLayers) {
  const auto labels = labels_for(Split::train, 3);
  EXPECT_EQ(error_of([&] { measured("linear_probe", {probe_record(Split::train, labels, {})}); }),
            "linear_probe: no layers were recorded");
}

TEST(LinearProbe, RejectsASingleTrainingSample) {
  const auto labels = labels_of({1});
  const Outputs outputs = {{"only", torch::ones({1, 2})}};
  EXPECT_EQ(error_of([&] {
              measured("linear_probe", {probe_record(Split::train, labels, outputs),
                                        probe_record(Split::test, labels, outputs)});
            }),
            "linear_probe: needs at least as many training samples as classes, 2, got 1");
}

TEST(LinearProbe, RejectsLabelsOutOfRange) {
  auto record = noisy_layer()[0];
  record.classes = 2;
  EXPECT_EQ(error_of([&] { make_measure("linear_probe")->update(record); }),
            "linear_probe: labels of the trained dataset must be in [0, 2), go from 0 to 2");
}

TEST(LinearProbe, RejectsSettingsOutOfRange) {
  const auto making = [](const Values& values) {
    return error_of([&] { make_measure("linear_probe", values); });
  };
  EXPECT_EQ(making({{"pool", 0}}), "measure.linear_probe.pool: must be at least 1, got 0");
  EXPECT_EQ(making({{"max_iterations", 0}}),
            "measure.linear_probe.max_iterations: must be at least 1, got 0");
  EXPECT_EQ(making({{"tolerance", 0.0}}), "measure.linear_probe.tolerance: must be above 0, got 0");
  EXPECT_EQ(making({{"threshold", 1.5}}),
            "measure.linear_probe.threshold: must be in (0, 1], got 1.5");
  EXPECT_EQ(making({{"l2", Value::array()}}),
            "measure.linear_probe.l2: must name at least one value");
  EXPECT_EQ(making({{"l2", {0.1, -1.0}}}),
            "measure.linear_probe.l2: must be finite and not below 0, got -1");
}

// They are for features as they come, not standardised.
TEST(LinearProbe, HandsOutItsWeightsIfAskedFor) {
  const auto labels = labels_for(Split::test, 3);
  const auto train = labels_for(Split::train, 3);
  const auto features = 7 + 3 * noisy(labels, 1);
  const std::vector<Record> records = {
      probe_record(Split::train, train, {{"layer", 7 + 3 * noisy(train, 2)}}),
      probe_record(Split::test, labels, {{"layer", features}})};
  EXPECT_TRUE(measured_curves(records, false).empty());
  const auto curves = measured_curves(records, true);
  const auto scores =
      torch::addmm(curves.at("probe_bias/layer"), features, curves.at("probe_weight/layer").t());
  const auto right = (scores.argmax(1) == labels).to(torch::kFloat64).mean().item<double>();
  EXPECT_DOUBLE_EQ(accuracies_of(measured("linear_probe", records)).front(), right);
  EXPECT_GT(right, 0.5);
}

}  // namespace kelvin::linear_probe_test
