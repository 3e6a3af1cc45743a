#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::class_statistics_test {

constexpr int64_t kClasses = 4;

torch::Tensor floats(const torch::Tensor& values) { return values.to(torch::kFloat32); }

// Feature maps and features of classes with means of their own.
Record some_record(int64_t samples, uint64_t seed) {
  const auto labels = (torch::arange(samples) * torch::arange(samples)) % kClasses;
  auto record = record_of(torch::zeros({samples, kClasses}), labels);
  const auto maps = noise({kClasses, 3, 2, 2}, 100).index_select(0, labels);
  const auto flat = noise({kClasses, 6}, 101).index_select(0, labels);
  record.layers = {
      {.name = "maps", .weight = {}, .output = floats(maps + noise({samples, 3, 2, 2}, seed) + 1)},
      {.name = "flat", .weight = {}, .output = floats(flat + 0.5 * noise({samples, 6}, seed + 1))}};
  return record;
}

Record part_of(const Record& record, int64_t begin, int64_t end) {
  auto part = record;
  part.labels = record.labels.slice(0, begin, end);
  part.logits = record.logits.slice(0, begin, end);
  for (auto& layer : part.layers) layer.output = layer.output.slice(0, begin, end);
  return part;
}

Reading of_layer(const Readings& readings, const std::string& name, const std::string& layer) {
  for (const auto& reading : readings) {
    if (reading.name == name && reading.layer == layer && !reading.index) return reading;
  }
  ADD_FAILURE() << "no " << name << " of " << layer;
  return {};
}

TEST(ClassStatistics, AgreesWithNumPyInEveryLayer) {
  const auto record = some_record(80, 1);
  const auto readings = measured("class_statistics", {record});
  const auto expected = oracle(R"(
l = x["labels"]
for name in ("maps", "flat"):
    r = x[name].astype(float).reshape(len(l), -1)
    mean = {c: r[l == c].mean(0) for c in np.unique(l)}
    b = sum(np.sum(l == c) * np.sum((mean[c] - r.mean(0))**2) for c in mean) / len(r)
    w = sum(np.sum((r[l == c] - mean[c])**2) for c in mean) / len(r)
    e = [np.linalg.eigvalsh(np.cov(r[l == c].T)) for c in mean]
    rank = np.mean([np.sum(v > 1e-3 * v.max()) for v in e])
    out[name] = np.array([b, w, w / b, rank, r.var(0).sum()])
)",
                               {{"labels", record.labels},
                                {"maps", record.layers[0].output},
                                {"flat", record.layers[1].output}});
  for (const std::string layer : {"maps", "flat"}) {
    const auto between = of_layer(readings, "between_class_variance", layer);
    const auto within = of_layer(readings, "within_class_variance", layer);
    const auto ratio = of_layer(readings, "class_variance_ratio", layer);
    const auto rank = of_layer(readings, "class_rank", layer);
    expect_close(doubles({between.value, within.value, ratio.value, rank.value,
                          between.value + within.value}),
                 expected.at(layer), 1e-6);
    EXPECT_EQ(between.split, "test");
    EXPECT_EQ(between.definition["samples"], 80);
    EXPECT_EQ(between.definition["features"], layer == "maps" ? 12 : 6);
    EXPECT_FALSE(between.definition.contains("projected_to"));
    EXPECT_EQ(between.definition["centring"], "mean of all samples");
    EXPECT_EQ(within.definition["centring"], "mean of the class");
    EXPECT_EQ(ratio.definition["tap"], "after normalisation, residual add and activation");
  }
}

TEST(ClassStatistics, ListsEachClassAfterTheMeans) {
  const auto readings = measured("class_statistics", {some_record(80, 1)});
  const auto ranks = readings_of(readings, "class_rank");
  // Squares leave 0 and 1 after division by four: two classes occur.
  ASSERT_EQ(ranks.size(), 2U + 2U * 2U);
  EXPECT_FALSE(ranks[0].index || ranks[1].index);
  for (size_t i = 2; i < ranks.size(); ++i) EXPECT_EQ(ranks[i].index, (i - 2) % 2);
}

TEST(ClassStatistics, SaysWhatIsEstimatedOfWideLayers) {
  auto record = some_record(60, 1);
  record.layers[0].output = floats(noise({60, 500}, 2) + record.labels.unsqueeze(1));
  const auto readings = measured("class_statistics", {record}, {{"sketch", 128}});
  const auto exact = measured("class_statistics", {record});
  for (const char* name : {"between_class_variance", "within_class_variance"}) {
    const auto reading = of_layer(readings, name, "maps");
    EXPECT_EQ(reading.definition["features"], 500);
    EXPECT_EQ(reading.definition["projected_to"], 128);
    EXPECT_EQ(reading.definition["relative_standard_error"], 0.125);
    const double ratio = reading.value / of_layer(exact, name, "maps").value;
    EXPECT_NEAR(ratio, 1, 3 * 0.125);
    EXPECT_NE(ratio, 1);
    EXPECT_EQ(of_layer(readings, name, "flat").value, of_layer(exact, name, "flat").value);
  }
  const auto total = [](const Readings& all) {
    return of_layer(all, "between_class_variance", "maps").value +
           of_layer(all, "within_class_variance", "maps").value;
  };
  EXPECT_NEAR(total(readings) / total(exact), 1, 1e-9);
}

TEST(ClassStatistics, DrawsItsProjectionsFromTheSeed) {
  auto record = some_record(60, 1);
  record.layers[0].output = floats(noise({60, 500}, 2) + record.labels.unsqueeze(1));
  const auto with_seed = [&](uint64_t seed) {
    return measured("class_statistics", {record}, {{"sketch", 128}}, {.seed = seed});
  };
  expect_same(with_seed(1), with_seed(1));
  EXPECT_NE(of_layer(with_seed(1), "between_class_variance", "maps").value,
            of_layer(with_seed(2), "between_class_variance", "maps").value);
}

TEST(ClassStatistics, IgnoresHowSamplesAreBatched) {
  const auto whole = some_record(50, 3);
  expect_same(measured("class_statistics", {part_of(whole, 0, 17), part_of(whole, 17, 50)}),
              measured("class_statistics", {whole}), 1e-9);
}

TEST(ClassStatistics, RanksTheFirstSamplesAlone) {
  const auto record = some_record(50, 4);
  const auto readings = measured("class_statistics", {record}, {{"samples", 20}});
  EXPECT_EQ(of_layer(readings, "class_rank", "flat").definition["samples"], 20);
  EXPECT_EQ(of_layer(readings, "within_class_variance", "flat").definition["samples"], 50);
  EXPECT_EQ(make_measure("class_statistics", {{"samples", 20}})->needs().sample, 20);
}

TEST(ClassStatistics, IgnoresTrainingAndOodSamples) {
  const auto test = some_record(30, 5);
  auto train = some_record(30, 6);
  train.split = Split::train;
  auto ood = some_record(30, 7);
  ood.ood = "textures";
  expect_same(measured("class_statistics", {train, test, ood}),
              measured("class_statistics", {test}));
}

TEST(ClassStatistics, OfALayerThatIsConstantHasNoRatio) {
  auto record = some_record(30, 8);
  record.layers[0].output = torch::zeros({30, 3, 2, 2});
  record.layers[1].output = torch::full({30, 6}, 0.3F);
  const auto readings = measured("class_statistics", {record});
  EXPECT_TRUE(readings_of(readings, "class_variance_ratio").empty());
  for (const std::string layer : {"maps", "flat"}) {
    EXPECT_EQ(of_layer(readings, "between_class_variance", layer).value, 0);
    EXPECT_NEAR(of_layer(readings, "within_class_variance", layer).value, 0, 1e-14);
    EXPECT_EQ(of_layer(readings, "class_rank", layer).value, 0);
  }
}

TEST(ClassStatistics, OfOneSampleHasVariancesOfZeroAndNoRank) {
  const auto readings = measured("class_statistics", {some_record(1, 9)});
  ASSERT_EQ(readings.size(), 4U);
  for (const auto& reading : readings) EXPECT_EQ(reading.value, 0) << reading.name;
}

TEST(ClassStatistics, KnowsWhatItHolds) {
  const auto record = some_record(4, 10);
  const int64_t variances = (kClasses * 13 + 2 * 12 + kClasses * 7 + 2 * 6) * 8;
  const auto measure = make_measure("class_statistics");
  EXPECT_EQ(measure->memory(record, 10), variances + 10 * (12 + 6) * 4);
  EXPECT_EQ(measure->memory(record, 10'000), variances + 1024 * (12 + 6) * 4);
}

TEST(ClassStatistics, RejectsLabelsOutOfRange) {
  for (const int64_t label : {int64_t{-1}, kClasses}) {
    auto record = some_record(10, 11);
    record.labels[3] = label;
    const auto message = "class_statistics: labels must be in [0, 4), got " + std::to_string(label);
    EXPECT_EQ(error_of([&] { make_measure("class_statistics")->update(record); }), message);
    EXPECT_EQ(error_of([&] { make_measure("class_statistics")->see_sample(record); }), message);
  }
}

TEST(ClassStatistics, RejectsFeaturesThatAreNotFinite) {
  for (const double value : {std::nan(""), static_cast<double>(INFINITY)}) {
    auto record = some_record(10, 12);
    record.layers[1].output[2][3] = value;
    const std::string message =
        "class_statistics: layer 'flat' must be finite, has a NaN or an infinity";
    EXPECT_EQ(error_of([&] { make_measure("class_statistics")->update(record); }), message);
    EXPECT_EQ(error_of([&] { make_measure("class_statistics")->see_sample(record); }), message);
  }
}

TEST(ClassStatistics, RejectsRecordsWithoutLayersAndLayersThatChange) {
  auto without = some_record(10, 13);
  without.layers.clear();
  EXPECT_EQ(error_of([&] { make_measure("class_statistics")->update(without); }),
            "class_statistics: needs records of layers, got none");
  auto wider = some_record(10, 13);
  wider.layers[1].output = torch::zeros({10, 8});
  const auto measure = make_measure("class_statistics");
  measure->update(some_record(10, 13));
  EXPECT_EQ(error_of([&] { measure->update(wider); }),
            "class_statistics: every batch must have the same layers; 'flat' of 6 features became "
            "'flat' of 8");
}

// Exact where sums for each class fit into an eighth of the memory, projected where they do not.
TEST(ClassStatistics, ProjectOnlyWhatMemoryAsksFor) {
  Record record = some_record(10, 13);
  record.layers[0].output = torch::rand({10, 3000});
  const auto is_projected = [&](int64_t memory) {
    const auto readings = measured("class_statistics", {record}, {}, {.memory = memory});
    return readings.front().definition.contains("projected_to");
  };
  EXPECT_FALSE(is_projected(int64_t{4} << 20));
  EXPECT_TRUE(is_projected(1 << 20));
}

TEST(ClassStatistics, RejectsSettingsOutOfRange) {
  EXPECT_EQ(error_of([] {
              make_measure("class_statistics", {{"sketch", -1}});
            }),
            "measure.class_statistics.sketch: must not be below 0, got -1");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"samples", "at least 2, got 0"},
      {"sample_sketch", "at least 1, got 0"},
      {"gamma", "in (0, 1), got 0"}};
  for (const auto& [key, rest] : cases) {
    const Values values = {{key, 0}};
    EXPECT_EQ(error_of([&] { make_measure("class_statistics", values); }),
              "measure.class_statistics." + key + ": must be " + rest);
  }
}

}  // namespace kelvin::class_statistics_test
