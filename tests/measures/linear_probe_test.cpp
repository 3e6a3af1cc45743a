#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kelvin/measures/probes.h"
#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/tensors.h"

namespace kelvin::linear_probe_test {

using Outputs = std::vector<std::pair<std::string, torch::Tensor>>;

Record probe_record(Split split, const torch::Tensor& labels, const Outputs& outputs,
                    const std::string& ood = "") {
  Record record;
  record.split = split;
  record.ood = ood;
  record.labels = labels;
  record.classes = labels.max().item<int64_t>() + 1;
  for (const auto& [name, output] : outputs) {
    LayerRecord layer;
    layer.name = name;
    layer.output = output;
    record.layers.push_back(layer);
  }
  return record;
}

// Classes in turn; class 0 twice as often as any other while training.
torch::Tensor labels_for(Split split, int64_t classes) {
  const auto turn = torch::arange(classes);
  return split == Split::test ? turn.repeat({10}) : torch::cat({labels_of({0}), turn}).repeat({20});
}

torch::Tensor separable(const torch::Tensor& labels, uint64_t seed = 0) {
  const auto classes = labels.max().item<int64_t>() + 1;
  return 4 * torch::one_hot(labels, classes) + 0.1 * noise({labels.size(0), classes}, seed);
}

// Features that say nothing: the probe can only name the commonest class.
torch::Tensor blind(const torch::Tensor& labels) { return torch::ones({labels.size(0), 2}); }

// Features that say something.
torch::Tensor noisy(const torch::Tensor& labels, uint64_t seed) {
  return (torch::one_hot(labels, 3) + noise({labels.size(0), 3}, seed)).to(torch::kFloat32);
}

std::vector<double> accuracies_of(const Readings& readings, const std::string& ood = "") {
  std::vector<double> accuracies;
  for (const auto& reading : readings_of(readings, "probe_accuracy")) {
    if (reading.ood == ood) accuracies.push_back(reading.value);
  }
  return accuracies;
}

NamedTensors measured_curves(const std::vector<Record>& records, bool keep_weights) {
  const auto measure = make_measure("linear_probe", {{"keep_weights", keep_weights}});
  show(*measure, records);
  return measure->curves();
}

// A network that is blind at first, and at last to OOD samples.
std::vector<Record> tunnel(int64_t ood_classes = 5) {
  std::vector<Record> records;
  for (const auto split : {Split::train, Split::test}) {
    const auto labels = labels_for(split, 3);
    records.push_back(probe_record(
        split, labels,
        {{"first", blind(labels)}, {"second", separable(labels)}, {"last", separable(labels)}}));
    const auto ood = labels_for(split, ood_classes);
    records.push_back(probe_record(
        split, ood, {{"first", separable(ood)}, {"second", separable(ood)}, {"last", blind(ood)}},
        "textures"));
  }
  return records;
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

// Both splits of one layer.
std::vector<Record> one_layer(const torch::Tensor& train, const torch::Tensor& test) {
  return {probe_record(Split::train, labels_for(Split::train, 3), {{"only", train}}),
          probe_record(Split::test, labels_for(Split::test, 3), {{"only", test}})};
}

std::vector<Record> noisy_layer() {
  return one_layer(noisy(labels_for(Split::train, 3), 1), noisy(labels_for(Split::test, 3), 2));
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

// Shows training splits as often as they are wanted, the samples in another order each time, each
// right before the test split of the same population.
Readings streamed(const std::vector<Record>& records, const Values& values) {
  const auto measure = make_measure("linear_probe", values);
  const auto of = [&](Split split, const std::string& ood) {
    auto record = *std::find_if(records.begin(), records.end(), [&](const Record& each) {
      return each.split == split && each.ood == ood;
    });
    record.indices = torch::arange(record.labels.size(0));
    return record;
  };
  for (const std::string ood : {"", "textures"}) {
    uint64_t pass = 0;
    do {
      auto record = of(Split::train, ood);
      const auto order = noise({record.labels.size(0)}, pass++).argsort();
      record.labels = record.labels.index_select(0, order);
      record.indices = record.indices.index_select(0, order);
      for (auto& layer : record.layers) layer.output = layer.output.index_select(0, order);
      measure->update(record);
    } while (measure->wants_train_again());
    measure->update(of(Split::test, ood));
  }
  return measure->compute();
}

TEST(LinearProbe, OfEveryProtocolSeesTheTunnel) {
  const std::vector<Values> protocols = {
      {{"protocol", "diagnose"}},
      {{"protocol", "reproduce"}, {"passes", 20}, {"batch", 10}},
      {{"protocol", "published"}, {"passes", 60}, {"batch", 10}, {"rate", 0.01}}};
  for (const auto& values : protocols) {
    const auto readings = streamed(tunnel(), values);
    SCOPED_TRACE(values.at("protocol"));
    expect_close(doubles(accuracies_of(readings)), doubles({1. / 3, 1, 1}), 1e-12);
    expect_close(doubles(accuracies_of(readings, "textures")), doubles({1, 1, 1. / 5}), 1e-12);
    EXPECT_DOUBLE_EQ(reading_of(readings, "rho").value, 4. / 5);
    EXPECT_DOUBLE_EQ(reading_of(readings, "kappa", {{"last_layer", "logits"}}).value, 2. / 3);
    for (const auto& reading : readings) {
      EXPECT_EQ(reading.definition["protocol"], values.at("protocol")) << reading.name;
      EXPECT_TRUE(reading.interval) << reading.name;
    }
  }
}

TEST(LinearProbe, AsksForAsManyPassesAsItsProtocolHas) {
  const auto passes_of = [](const Values& values) {
    const auto measure = make_measure("linear_probe", values);
    EXPECT_FALSE(measure->wants_train_again());  // nothing to train on
    auto record = tunnel()[0];
    record.indices = torch::arange(record.labels.size(0));
    int64_t passes = 0;
    do {
      measure->update(record);
      ++passes;
    } while (measure->wants_train_again());
    return passes;
  };
  EXPECT_EQ(passes_of({}), 1);
  EXPECT_EQ(passes_of({{"protocol", "reproduce"}}), 2);
  EXPECT_EQ(passes_of({{"protocol", "published"}}), 30);
}

TEST(LinearProbe, ReadsBeforeTheAddIfAsked) {
  auto records = noisy_layer();
  for (auto& record : records) {
    record.layers[0].before_add = torch::one_hot(record.labels, 3).to(torch::kFloat32);
  }
  const auto readings = measured("linear_probe", records, {{"tap", "before_add"}});
  EXPECT_EQ(accuracies_of(readings).at(0), 1);
  EXPECT_EQ(reading_of(readings, "probe_accuracy").definition["tap"],
            "after normalisation, before the residual add");
  EXPECT_EQ(reading_of(readings, "kappa").definition["tap"],
            "after normalisation, before the residual add where there is one");
  EXPECT_LT(accuracies_of(measured("linear_probe", records)).at(0), 1);
}

TEST(LinearProbe, CannotMergeWhatLearntFromTwoStreams) {
  const Values values = {{"protocol", "published"}};
  const auto first = make_measure("linear_probe", values);
  const auto second = make_measure("linear_probe", values);
  for (auto* measure : {first.get(), second.get()}) measure->update(tunnel()[0]);
  EXPECT_EQ(error_of([&] { first->merge(*second); }),
            "linear_probe: probes that learnt from two streams cannot be merged; protocol diagnose "
            "can, or show one of them both streams");
  // One that had seen nothing still has not.
  const auto empty = make_measure("linear_probe", values);
  EXPECT_NE(error_of([&] { empty->merge(*second); }), "");
  EXPECT_EQ(error_of([&] { empty->compute(); }), "linear_probe: no layers were recorded");
}

TEST(LinearProbe, TakesOverAllPopulationsIfItHasSeenNothing) {
  const auto full = make_measure("linear_probe");
  for (const auto& record : tunnel()) full->update(record);
  const auto empty = make_measure("linear_probe");
  empty->merge(*full);
  expect_same(empty->compute(), full->compute());
}

TEST(LinearProbe, RejectsLabelsOutOfRange) {
  auto record = noisy_layer()[0];
  record.classes = 2;
  EXPECT_EQ(error_of([&] { make_measure("linear_probe")->update(record); }),
            "linear_probe: labels of the trained dataset must be in [0, 2), go from 0 to 2");
}

TEST(LinearProbe, RejectsUnknownProtocolsAndTaps) {
  const auto making = [](const Values& values) {
    return error_of([&] { make_measure("linear_probe", values); });
  };
  EXPECT_EQ(making({{"protocol", "tunnel"}}),
            "measure.linear_probe.protocol: must be diagnose, reproduce or published, got "
            "'tunnel'");
  EXPECT_EQ(making({{"tap", "input"}}),
            "measure.linear_probe.tap: must be output or before_add, got 'input'");
  EXPECT_EQ(making({{"protocol", "reproduce"}, {"passes", 1}}),
            "measure.linear_probe.passes: must be at least 2, got 1");
  EXPECT_EQ(making({{"protocol", "published"}, {"rate", 0.0}}),
            "measure.linear_probe.rate: must be finite and above 0, got 0");
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
