#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "kelvin/report/page/glossary.h"
#include "tests/support/collapse.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"

namespace kelvin::neural_collapse_test {

constexpr int64_t kClasses = 5;

LayerRecord output_of(const std::string& name, const torch::Tensor& output) {
  LayerRecord layer;
  layer.name = name;
  layer.output = output;
  return layer;
}

// Features around class means, a layer of maps and the logits; classes of different sizes.
Record some_record(int64_t samples, uint64_t seed, Split split = Split::train,
                   const std::string& ood = "") {
  const auto labels = (torch::arange(samples) % 7).clamp_max(kClasses - 1);
  const auto features = noise({samples, 8}, seed) + 2 * noise({kClasses, 8}, 900).index({labels});
  const auto weight = noise({kClasses, 8}, 901) + 0.5 * noise({kClasses, 8}, 900);
  const auto bias = noise({kClasses}, 902);
  auto record = record_of(features.matmul(weight.t()) + bias, labels, split, ood);
  record.features = features.to(torch::kFloat32);
  record.weight = weight.to(torch::kFloat32);
  record.bias = bias.to(torch::kFloat32);
  const auto maps =
      noise({samples, 2, 3, 4}, seed + 1) + noise({kClasses, 2, 3, 4}, 903).index({labels});
  record.layers = {output_of("conv", maps.to(torch::kFloat32)),
                   output_of("fc", record.logits.to(torch::kFloat32))};
  return record;
}

// Every class one point, the points a simplex in general position, the classifier their dual.
Record collapsed_record(int64_t classes, int64_t dims, int64_t per_class) {
  const auto turn = std::get<0>(torch::linalg_qr(noise({dims, classes}, 910))).t();
  const auto simplex =
      3 * (torch::eye(classes, torch::kFloat64) - 1.0 / static_cast<double>(classes)).matmul(turn);
  const auto centre = 4 * noise({dims}, 911);
  const auto labels = torch::arange(classes * per_class) % classes;
  const auto features = (simplex + centre).index({labels});
  const auto weight = 0.1 * simplex;
  auto record = record_of((features - centre).matmul(weight.t()), labels, Split::train);
  record.features = features;
  record.weight = weight;
  record.bias = -weight.mv(centre);
  record.layers = {output_of("last", features)};
  return record;
}

std::vector<Record> batches_of(const Record& record, int64_t size) {
  std::vector<Record> batches;
  const auto samples = record.logits.size(0);
  for (int64_t i = 0; i < samples; i += size) {
    batches.push_back(collapse_part(record, torch::arange(i, std::min(samples, i + size))));
  }
  return batches;
}

double value_of(const Readings& readings, const std::string& name, const std::string& layer = "") {
  return layer_reading(readings, name, layer).value;
}

std::set<std::string> names_in(const Readings& readings, const std::string& layer) {
  std::set<std::string> names;
  for (const auto& reading : readings) {
    if (reading.layer == layer) names.insert(reading.name);
  }
  return names;
}

const std::set<std::string> kOfLayers = {"nc1_trace_pinv",  "nc1_trace_ratio", "nc1_cdnv",
                                         "nc2_equinorm",    "nc2_equiangular", "nc2_etf_error",
                                         "nc4_ncc_mismatch"};

void expect_relative(const Readings& actual, const Readings& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(fields_of(actual[i])["name"], fields_of(expected[i])["name"]);
    EXPECT_EQ(actual[i].definition, expected[i].definition) << expected[i].name;
    EXPECT_NEAR(actual[i].value, expected[i].value, tolerance * std::abs(expected[i].value) + 1e-13)
        << expected[i].name << " " << expected[i].layer;
  }
}

TEST(NeuralCollapseMeasure, IsZeroOfACollapsedSimplex) {
  for (const int64_t classes : {2, 3, 10}) {
    SCOPED_TRACE(classes);
    const auto readings = collapse_of({collapsed_record(classes, 12, 7)});
    for (const auto& reading : readings) {
      // The bias is what makes up for the centre.
      if (reading.name == "nc4_ncc_mismatch_without_bias") continue;
      EXPECT_NEAR(reading.value, 0, 1e-12) << reading.name << " " << reading.layer;
    }
    EXPECT_EQ(names_in(readings, "last"), kOfLayers);
    EXPECT_EQ(names_in(readings, "").size(), 32U);
  }
}

TEST(NeuralCollapseMeasure, OfPointsThatAreNoSimplexIsKnown) {
  // Two classes at +-2 along one axis, one of them 1 up and down; the third at the centre.
  const auto features = torch::tensor(
      {{2.0, 1.0}, {2.0, -1.0}, {-2.0, 0.0}, {-2.0, 0.0}, {0.0, 0.0}}, torch::kFloat64);
  auto record = record_of(torch::eye(5, torch::kFloat64).narrow(1, 0, 3),
                          labels_of({0, 0, 1, 1, 2}), Split::train);
  record.features = features;
  const auto readings = collapse_of({record});
  // All spread is orthogonal to the means.
  EXPECT_NEAR(value_of(readings, "nc1_trace_pinv"), 0, 1e-15);
  EXPECT_NEAR(value_of(readings, "nc1_trace_ratio"), (2.0 / 5) / (8.0 / 3), 1e-15);
  EXPECT_NEAR(value_of(readings, "nc1_cdnv"), (1.0 / 32 + 1.0 / 8 + 0) / 3, 1e-15);
  EXPECT_NEAR(value_of(readings, "nc2_equinorm"), std::sqrt(4.0 / 3) / (4.0 / 3), 1e-15);
  // The third mean has no direction, and there is no classifier.
  EXPECT_FALSE(has_reading(readings, "nc2_equiangular", ""));
  EXPECT_FALSE(has_reading(readings, "nc3_self_duality", ""));
  // Predicted are 0, 1, 2, 0 and 0, nearest are 0, 0, 1, 1 and 2.
  EXPECT_NEAR(value_of(readings, "nc4_ncc_mismatch"), 4.0 / 5, 1e-15);
}

TEST(NeuralCollapseMeasure, AgreesWithThePlainDefinitions) {
  const auto train = some_record(60, 1);
  const auto test = some_record(30, 2, Split::test);
  const auto ood = some_record(20, 3, Split::test, "textures");
  const auto expected = oracle(std::string(kCollapseInPython) + R"(
def put_as(layer):
    def put(name, value):
        out[layer + "/" + name] = value
    return put
y, predicted = x["labels"], x["logits"].argmax(1)
c = classifier_collapse(put_as(""), x["features"], y, predicted, x["weight"], x["bias"])
for layer in ("conv", "fc"):
    collapse(put_as(layer), x[layer].astype(float), y, predicted)
t = x["test_features"].astype(float)
nearest = np.array([c["classes"][np.argmin(np.linalg.norm(c["mu"] - v, axis=1))] for v in t])
out["test"] = np.mean(nearest != x["test_logits"].argmax(1))
f, fy = x["OOD"].astype(float), x["foreign_labels"]
def orthodev(m):
    return np.mean([abs(v @ m) / np.linalg.norm(v) / np.linalg.norm(m) for v in c["mu"]])
out["/orthodev"] = orthodev(f.mean(0))
out["/orthodev_class_means"] = orthodev(np.mean([f[fy == k].mean(0) for k in np.unique(fy)], 0))
)",
                               {{"features", train.features},
                                {"labels", train.labels},
                                {"logits", train.logits},
                                {"weight", train.weight},
                                {"bias", train.bias},
                                {"conv", train.layers[0].output},
                                {"fc", train.layers[1].output},
                                {"test_features", test.features},
                                {"test_logits", test.logits},
                                {"OOD", ood.features},
                                {"foreign_labels", ood.labels}});
  const auto readings = collapse_of(batches_of(train, 25), {test, ood});
  std::set<std::string> compared;
  for (const auto& reading : readings) {
    if (reading.split == "test") continue;
    const auto name = reading.layer + "/" + reading.name;
    ASSERT_TRUE(expected.contains(name)) << name;
    compared.insert(name);
    const auto wanted = expected.at(name).item<double>();
    EXPECT_NEAR(reading.value, wanted, 1e-9 * std::abs(wanted) + 1e-12) << name;
  }
  EXPECT_EQ(compared.size() + 1, expected.size());
  const auto of_test = readings_of(readings, "nc4_ncc_mismatch", {{"split", "test"}});
  ASSERT_EQ(of_test.size(), 3U);
  EXPECT_NEAR(of_test[0].value, expected.at("test").item<double>(), 1e-12);
  // The case is not a trivial one.
  EXPECT_GT(value_of(readings, "nc1_trace_pinv"), 0.1);
  EXPECT_GT(of_test[0].value, 0);
}

// K - 1 directions whatever they hold, as the notebook of Papyan and others inverts them.
TEST(NeuralCollapseMeasure, InvertsFaintDirectionsInTheVariantsThatDo) {
  auto record = some_record(60, 1);
  // One of the means hardly leaves the plane of the others.
  auto means = noise({kClasses, 8}, 920);
  means[4] = means.narrow(0, 0, 4).mean(0) + 3e-8 * noise({8}, 921);
  record.layers.clear();
  record.features = means.index({record.labels}) + 1e-4 * noise({60, 8}, 922);
  record.weight = record.weight.to(torch::kFloat64);
  // The classes' means become exactly those.
  for (int64_t c = 0; c < kClasses; ++c) {
    const auto rows = (record.labels == c).nonzero().squeeze(1);
    const auto own = record.features.index_select(0, rows);
    record.features.index_copy_(0, rows, own - own.mean(0) + means[c]);
  }
  const auto expected = oracle(std::string(kCollapseInPython) + R"(
def put(name, value):
    out[name] = value
classifier_collapse(put, x["features"], x["labels"], x["logits"].argmax(1), x["weight"])
)",
                               {{"features", record.features},
                                {"labels", record.labels},
                                {"logits", record.logits},
                                {"weight", record.weight}});
  const auto readings = collapse_of({record});
  EXPECT_EQ(layer_reading(readings, "nc1_trace_pinv", "").definition["directions"], 3);
  for (const std::string name : {"nc1_trace_svd", "nc1_trace_svd_unscaled", "nc1_trace_pinv"}) {
    const auto wanted = expected.at(name).item<double>();
    EXPECT_NEAR(value_of(readings, name), wanted, 1e-6 * wanted) << name;
  }
  EXPECT_EQ(layer_reading(readings, "nc1_trace_svd", "").definition["directions"], 4);
  EXPECT_FALSE(layer_reading(readings, "nc1_trace_svd", "").definition.contains("cutoff"));
  EXPECT_GT(value_of(readings, "nc1_trace_svd"), 100 * value_of(readings, "nc1_trace_pinv"));
  EXPECT_DOUBLE_EQ(value_of(readings, "nc1_trace_svd_unscaled"),
                   kClasses * value_of(readings, "nc1_trace_svd"));
}

TEST(NeuralCollapseMeasure, InvertsNoRounding) {
  // The last class lies amid the others: four means differ in three directions.
  auto record = some_record(60, 1);
  record.layers.clear();
  const auto corners = torch::eye(4, 8, torch::kFloat64);
  const auto means = torch::cat({corners, corners.mean(0, /*keepdim=*/true)});
  record.features = means.index({record.labels});
  const auto readings = collapse_of({record});
  EXPECT_EQ(layer_reading(readings, "nc1_trace_pinv", "").definition["directions"], 3);
  EXPECT_FALSE(has_reading(readings, "nc1_trace_svd", ""));
  EXPECT_FALSE(has_reading(readings, "nc1_trace_svd_unscaled", ""));
}

TEST(NeuralCollapseMeasure, SaysWhatItsNumbersMean) {
  const auto readings = collapse_of({some_record(60, 1)}, {some_record(30, 2, Split::test)});
  for (const auto& reading : readings) {
    EXPECT_FALSE(term(reading.name).meaning.empty()) << reading.name;
    EXPECT_FALSE(reading.definition["formula"].get<std::string>().empty()) << reading.name;
    EXPECT_TRUE(std::isfinite(reading.value)) << reading.name;
  }
  auto definition = readings.front().definition;
  EXPECT_EQ(readings.front().name, "nc1_trace_pinv");
  EXPECT_EQ(readings.front().layer, "");
  EXPECT_EQ(readings.front().split, "train");
  definition.erase("symbols");
  EXPECT_EQ(definition, (Definition{{"formula", "Tr(S_W S_B^+) / K"},
                                    {"matrix", "the classifier's input (sample x feature)"},
                                    {"centring", "mean of the class means"},
                                    {"classes", 5},
                                    {"missing_classes", 0},
                                    {"samples", 60},
                                    {"features", 8},
                                    {"passes", 2},
                                    {"precision", "float32 forward, float64 sums"},
                                    {"split", "train"},
                                    {"directions", 4},
                                    {"cutoff", 1e-12}}));
  const auto of_test = readings_of(readings, "nc4_ncc_mismatch", {{"split", "test"}}).front();
  EXPECT_EQ(of_test.split, "test");
  EXPECT_EQ(of_test.definition["means"], "of the training split");
  EXPECT_EQ(of_test.definition["samples"], 30);
}

TEST(NeuralCollapseMeasure, DependsNeitherOnTheOrderNorOnTheBatches) {
  const auto whole = some_record(60, 1);
  const auto expected = collapse_of({whole});
  expect_relative(collapse_of(batches_of(whole, 7)), expected, 1e-9);
  const auto shuffled = collapse_part(whole, noise({60}, 5).argsort());
  expect_relative(collapse_of({shuffled}), expected, 1e-9);
}

TEST(NeuralCollapseMeasure, IgnoresHowFeaturesAreTurned) {
  auto record = some_record(60, 1);
  record.features = record.features.to(torch::kFloat64);
  record.weight = record.weight.to(torch::kFloat64);
  auto turned = record;
  const auto rotation = random_rotation(8, 6);
  turned.features = record.features.matmul(rotation);
  turned.weight = record.weight.matmul(rotation);
  expect_relative(collapse_of({turned}), collapse_of({record}), 1e-9);
}

TEST(NeuralCollapseMeasure, IgnoresTheScaleOfFeaturesButWhereItCounts) {
  const auto record = some_record(60, 1);
  auto scaled = record;
  scaled.features = 8 * record.features;
  scaled.layers[0].output = 16 * record.layers[0].output;
  const auto expected = collapse_of({record});
  const auto readings = collapse_of({scaled});
  ASSERT_EQ(readings.size(), expected.size());
  for (size_t i = 0; i < readings.size(); ++i) {
    const auto& name = readings[i].name;
    if (name == "nc3_dual_variance") {
      EXPECT_NEAR(readings[i].value, 64 * expected[i].value, 1e-9);
    } else if (name != "nc4_centre_logits") {
      EXPECT_NEAR(readings[i].value, expected[i].value, 1e-10) << name;
    }
  }
}

TEST(NeuralCollapseMeasure, IgnoresWhereFeaturesLieButForTheClassifierAndNc5) {
  auto record = some_record(60, 1);
  record.features = record.features.to(torch::kFloat64);
  auto moved = record;
  moved.features = record.features + 10 * noise({8}, 7);
  const auto expected = collapse_of({record});
  for (const auto& reading : collapse_of({moved})) {
    if (reading.name == "nc4_centre_logits" || reading.name == "nc4_ncc_mismatch_without_bias") {
      continue;
    }
    EXPECT_NEAR(reading.value, value_of(expected, reading.name, reading.layer), 1e-9)
        << reading.name;
  }
}

TEST(NeuralCollapseMeasure, TakesTheTestSplitIfThereIsNoOther) {
  auto test = some_record(60, 1);
  test.split = Split::test;
  const auto ood = some_record(20, 3, Split::test, "textures");
  const auto readings = measured("neural_collapse", {test, ood});
  const auto expected = collapse_of({some_record(60, 1)}, {ood});
  ASSERT_EQ(readings.size(), expected.size());
  for (size_t i = 0; i < readings.size(); ++i) {
    EXPECT_EQ(readings[i].name, expected[i].name);
    EXPECT_EQ(readings[i].split, "test");
    EXPECT_EQ(readings[i].definition["split"], "test, because no training samples were shown");
    EXPECT_EQ(readings[i].definition["passes"], 2);
    EXPECT_NEAR(readings[i].value, expected[i].value, 1e-12) << readings[i].name;
  }
}

TEST(NeuralCollapseMeasure, PrefersTheTrainingSplitWheneverItComes) {
  const auto train = some_record(60, 1);
  const auto test = some_record(30, 2, Split::test);
  const auto measure = make_measure("neural_collapse");
  measure->update(test);
  show_twice(*measure, {train}, {test});
  expect_same(measure->compute(), collapse_of({train}, {test}));
}

TEST(NeuralCollapseMeasure, AsksForOneSecondPassOnly) {
  const auto train = some_record(60, 1);
  const auto measure = make_measure("neural_collapse");
  EXPECT_FALSE(measure->wants_train_again());
  measure->update(train);
  EXPECT_FALSE(measure->wants_another_pass());
  EXPECT_TRUE(measure->wants_train_again());
  measure->update(train);
  EXPECT_FALSE(measure->wants_train_again());
  EXPECT_FALSE(measure->wants_another_pass());
  const auto expected = measure->compute();
  // What others ask for is not counted again.
  measure->update(train);
  EXPECT_FALSE(measure->wants_train_again());
  expect_same(measure->compute(), expected);
}

TEST(NeuralCollapseMeasure, GivesAfterOnePassWhatMeansAloneTell) {
  const auto train = some_record(60, 1);
  const auto measure = make_measure("neural_collapse");
  measure->update(train);
  const auto readings = measure->compute();
  const auto expected = collapse_of({train});
  for (const auto& reading : expected) {
    const bool needs_spread =
        reading.name.starts_with("nc1") || reading.name.starts_with("nc4_ncc");
    EXPECT_EQ(has_reading(readings, reading.name, reading.layer), !needs_spread) << reading.name;
    if (needs_spread) continue;
    EXPECT_EQ(value_of(readings, reading.name, reading.layer), reading.value);
    EXPECT_EQ(layer_reading(readings, reading.name, reading.layer).definition["passes"], 1);
  }
}

TEST(NeuralCollapseMeasure, MergesHalvesOfEachPass) {
  const auto whole = some_record(60, 1);
  const auto test = some_record(30, 2, Split::test);
  const auto halves = batches_of(whole, 35);
  const auto test_halves = batches_of(test, 20);
  const auto first_pass = make_measure("neural_collapse");
  const auto other = make_measure("neural_collapse");
  first_pass->update(halves[0]);
  other->update(halves[1]);
  first_pass->merge(*other);
  // Both go on with the means of the whole.
  ASSERT_TRUE(first_pass->wants_train_again());
  const auto left = make_measure("neural_collapse");
  const auto right = make_measure("neural_collapse");
  left->merge(*first_pass);
  right->merge(*first_pass);
  left->update(halves[0]);
  right->update(halves[1]);
  EXPECT_FALSE(left->wants_train_again());
  left->update(test_halves[0]);
  right->update(test_halves[1]);
  left->merge(*right);
  expect_relative(left->compute(), collapse_of({whole}, {test}), 1e-9);
}

TEST(NeuralCollapseMeasure, MergesOodSamplesOfTheTestSplitOnce) {
  auto test = some_record(60, 1);
  test.split = Split::test;
  const auto ood = some_record(20, 3, Split::test, "textures");
  const auto halves = batches_of(test, 35);
  const auto first_pass = make_measure("neural_collapse");
  for (const auto& record : {test, ood}) first_pass->update(record);
  ASSERT_TRUE(first_pass->wants_another_pass());
  const auto left = make_measure("neural_collapse");
  const auto right = make_measure("neural_collapse");
  left->merge(*first_pass);
  right->merge(*first_pass);
  left->update(halves[0]);
  right->update(halves[1]);
  left->merge(*right);
  expect_relative(left->compute(), measured("neural_collapse", {test, ood}), 1e-9);
}

TEST(NeuralCollapseMeasure, RefusesToMergeWhatHasOtherMeans) {
  const auto halves = batches_of(some_record(60, 1), 35);
  const auto one = make_measure("neural_collapse");
  const auto other = make_measure("neural_collapse");
  show_twice(*one, {halves[0]});
  other->update(halves[1]);
  EXPECT_EQ(error_of([&] { one->merge(*other); }),
            "neural_collapse: can merge only measures in the same pass");
  const auto third = make_measure("neural_collapse");
  show_twice(*third, {halves[1]});
  EXPECT_EQ(error_of([&] { one->merge(*third); }),
            "ClassSpread: can merge only what was measured around the same class means");
  auto fewer = halves[1];
  fewer.layers.pop_back();
  const auto fourth = make_measure("neural_collapse");
  fourth->update(fewer);
  EXPECT_EQ(error_of([&] { other->merge(*fourth); }),
            "neural_collapse: can merge only measures of the same layers");
}

TEST(NeuralCollapseMeasure, ProjectsWideLayersIfMemoryIsShort) {
  // Little spread and many features: lengths and angles survive the projection.
  auto record = some_record(40, 1);
  const auto labels = record.labels;
  const auto wide = noise({40, 6000}, 8) + 3 * noise({kClasses, 6000}, 9).index({labels});
  record.layers[0] = output_of("wide", wide.to(torch::kFloat32));
  const MeasureContext small{.memory = 3 * kClasses * 8 * 3100};
  const auto readings = collapse_of(batches_of(record, 15), {}, small);
  const auto expected = collapse_of({record});
  for (const auto& reading : readings) {
    const auto exact = layer_reading(expected, reading.name, reading.layer);
    if (reading.layer != "wide") {
      EXPECT_NEAR(reading.value, exact.value, 1e-9);
      EXPECT_FALSE(reading.definition.contains("projected_to"));
      continue;
    }
    EXPECT_EQ(reading.definition["projected_to"], 3000);
    EXPECT_EQ(reading.definition["features"], 6000);
    EXPECT_FALSE(exact.definition.contains("projected_to"));
    if (reading.name == "nc1_trace_pinv") {
      EXPECT_GT(reading.value, exact.value);
      EXPECT_TRUE(reading.definition.contains("bias_of_projection"));
    } else {
      EXPECT_NEAR(reading.value, exact.value, 0.1 * exact.value + 0.02) << reading.name;
    }
  }
  const auto measure = make_measure("neural_collapse", {}, small);
  EXPECT_EQ(measure->memory(record, 40), kClasses * 8 * (3000 + 8 + 5 + 2 * 3000));
  EXPECT_EQ(make_measure("neural_collapse")->memory(record, 40),
            kClasses * 8 * (6000 + 8 + 5 + 2 * 6000));
}

TEST(NeuralCollapseMeasure, LeavesOutClassesWithoutSamples) {
  auto record = some_record(60, 1);
  record = collapse_part(record, (record.labels != 2).nonzero().squeeze(1));
  auto fewer = record;
  // The same with labels that have no gap, and a classifier without the missing row.
  const auto rows = labels_of({0, 1, 3, 4});
  fewer.labels = torch::where(record.labels > 2, record.labels - 1, record.labels);
  fewer.classes = 4;
  fewer.weight = record.weight.index_select(0, rows);
  fewer.bias = record.bias.index_select(0, rows);
  fewer.logits = record.logits.index_select(1, rows);
  const auto readings = collapse_of({record});
  const auto expected = collapse_of({fewer});
  for (const auto* name :
       {"nc1_trace_pinv", "nc1_cdnv", "nc2_etf_error", "nc3_self_duality", "nc3_dual_etf_error"}) {
    const auto reading = layer_reading(readings, name, "");
    EXPECT_NEAR(reading.value, value_of(expected, name), 1e-12) << name;
    EXPECT_EQ(reading.definition["classes"], 4);
    EXPECT_EQ(reading.definition["missing_classes"], 1);
  }
  // The weight alone has all of its rows.
  EXPECT_EQ(layer_reading(readings, "nc2_weight_etf_error", "").definition["classes"], 5);
}

TEST(NeuralCollapseMeasure, TakesFewerSamplesThanClasses) {
  const auto record = collapse_part(some_record(60, 1), labels_of({0, 1, 2}));
  const auto readings = collapse_of({record});
  EXPECT_NEAR(value_of(readings, "nc1_trace_pinv"), 0, 1e-25);
  EXPECT_NEAR(value_of(readings, "nc1_trace_ratio"), 0, 1e-25);
  EXPECT_GT(layer_reading(readings, "nc2_etf_error", "").definition["missing_classes"], 0);
}

TEST(NeuralCollapseMeasure, TakesMoreClassesThanFeatures) {
  auto record = some_record(60, 1);
  record.layers = {output_of("narrow", record.features.narrow(1, 0, 2))};
  const auto readings = collapse_of({record});
  EXPECT_EQ(names_in(readings, "narrow"), kOfLayers);
  EXPECT_EQ(layer_reading(readings, "nc1_trace_pinv", "narrow").definition["directions"], 2);
  // Two dimensions hold no simplex of five.
  EXPECT_GT(value_of(readings, "nc2_etf_error", "narrow"), 0.3);
}

TEST(NeuralCollapseMeasure, LeavesOutOfConstantFeaturesWhatIsNotDefined) {
  auto record = some_record(60, 1);
  record.layers = {output_of("zero", torch::zeros({60, 4})),
                   output_of("constant", torch::full({60, 4}, 0.1F))};
  record.features = torch::full({60, 8}, 0.3F);
  const auto readings = collapse_of({record});
  EXPECT_TRUE(names_in(readings, "zero").empty());
  EXPECT_TRUE(names_in(readings, "constant").empty());
  EXPECT_EQ(names_in(readings, ""),
            (std::set<std::string>{"nc0_weight_sum", "nc0_weight_sum_squared",
                                   "nc2_weight_equinorm", "nc2_weight_equiangular",
                                   "nc2_weight_etf_error", "nc2_weight_etf_error_per_pair",
                                   "nc3_dual_variance", "nc4_centre_logits"}));
  EXPECT_EQ(value_of(readings, "nc3_dual_variance"), 0);
}

TEST(NeuralCollapseMeasure, MeasuresLayersWithoutAClassifier) {
  auto record = some_record(60, 1);
  record.weight = torch::Tensor();
  record.bias = torch::Tensor();
  auto readings = collapse_of({record});
  for (const auto& reading : readings) {
    EXPECT_FALSE(reading.name.find("weight_") != std::string::npos &&
                 !reading.name.ends_with("weighted_mean"))
        << reading.name;
    EXPECT_FALSE(reading.name.starts_with("nc3")) << reading.name;
  }
  EXPECT_TRUE(has_reading(readings, "nc1_trace_pinv", ""));
  record.features = torch::Tensor();
  readings = collapse_of({record});
  EXPECT_TRUE(names_in(readings, "").empty());
  EXPECT_EQ(names_in(readings, "conv"), kOfLayers);
  // Without a bias the centre's logits are those of the weight.
  record = some_record(60, 1);
  record.bias = torch::Tensor();
  readings = collapse_of({record});
  EXPECT_EQ(layer_reading(readings, "nc4_centre_logits", "").definition["formula"],
            "|W mu_G|, the classifier has no bias");
}

TEST(NeuralCollapseMeasure, HasNc5OfEveryOodDatasetAndNoTrainingSamplesOfThem) {
  const auto train = some_record(60, 1);
  const auto textures = some_record(20, 3, Split::test, "textures");
  const auto digits = some_record(20, 4, Split::test, "digits");
  auto ood_train = some_record(20, 5, Split::train, "textures");
  const auto readings = collapse_of({train}, {textures, ood_train, digits});
  for (const auto& ood : {textures, digits}) {
    const auto alone = collapse_of({train}, {ood});
    for (const auto& name : {"orthodev", "orthodev_class_means"}) {
      const auto expected = layer_reading(alone, name, "");
      const auto found = readings_of(readings, name);
      ASSERT_EQ(found.size(), 2U);
      const auto& own = found[ood.ood == "digits" ? 0 : 1];
      EXPECT_EQ(own.ood, ood.ood);
      EXPECT_EQ(own.value, expected.value);
      EXPECT_EQ(own.definition["ood_samples"], 20);
    }
  }
}

TEST(NeuralCollapseMeasure, OrthoDevIsZeroOfOrthogonalFeatures) {
  auto record = collapsed_record(3, 6, 4);
  record.features = torch::cat({record.features, torch::zeros({12, 1})}, 1);
  record.weight = torch::Tensor();
  record.bias = torch::Tensor();
  auto ood = record;
  ood.split = Split::test;
  ood.ood = "elsewhere";
  ood.features = torch::zeros({12, 7}, torch::kFloat64);
  ood.features.select(1, 6).fill_(2);
  EXPECT_NEAR(value_of(collapse_of({record}, {ood}), "orthodev"), 0, 1e-15);
  // OOD features that are zero have no direction.
  ood.features = torch::zeros({12, 7}, torch::kFloat64);
  EXPECT_FALSE(has_reading(collapse_of({record}, {ood}), "orthodev", ""));
}

TEST(NeuralCollapseMeasure, KeepsSumsAndThenTheSpreadAsItsState) {
  const auto train = some_record(60, 1);
  const auto measure = make_measure("neural_collapse");
  measure->update(train);
  auto state = measure->state();
  EXPECT_EQ(state.size(), 6U);
  EXPECT_EQ(state.at("conv/class_sums").sizes(), (torch::IntArrayRef{5, 24}));
  EXPECT_EQ(state.at("/class_counts").sum().item<double>(), 60);
  ASSERT_TRUE(measure->wants_train_again());
  measure->update(train);
  state = measure->state();
  EXPECT_EQ(state.size(), 15U);
  EXPECT_EQ(state.at("conv/within").sizes(), (torch::IntArrayRef{4, 4}));
}

TEST(NeuralCollapseMeasure, RejectsWhatItCannotMeasure) {
  const auto message_of = [](const Record& record) {
    return error_of([&] { collapse_of({record}); });
  };
  auto record = some_record(60, 1);
  record.layers[0].output[3][1][2][0] = std::nanf("");
  EXPECT_EQ(message_of(record),
            "neural_collapse: layer 'conv' must be finite, has a NaN or an infinity");
  record = some_record(60, 1);
  record.features[5][2] = INFINITY;
  EXPECT_EQ(message_of(record),
            "neural_collapse: the classifier's input must be finite, has a NaN or an infinity");
  record = some_record(60, 1);
  record.logits[5][2] = std::nan("");
  EXPECT_EQ(message_of(record),
            "neural_collapse: logits must be finite, have a NaN or an infinity");
  record = some_record(60, 1);
  record.weight[0][0] = std::nanf("");
  EXPECT_EQ(message_of(record),
            "neural_collapse: the classifier's weight must be finite, has a NaN or an infinity");
  record = some_record(60, 1);
  record.weight = record.weight.narrow(1, 0, 7);
  EXPECT_EQ(message_of(record),
            "neural_collapse: the classifier's weight must be [5, 8], got [5, 7]");
  record = some_record(60, 1);
  record.labels = record.labels + 1;
  EXPECT_EQ(message_of(record), "neural_collapse: labels must be in [0, 5), got 5");
  record.labels = record.labels - 2;
  EXPECT_EQ(message_of(record), "neural_collapse: labels must be in [0, 5), got -1");
  record.labels = torch::full({60}, 3);
  EXPECT_EQ(message_of(record), "neural_collapse: needs samples of at least 2 classes, got 1");
  record.layers.clear();
  record.features = torch::Tensor();
  EXPECT_EQ(message_of(record),
            "neural_collapse: needs features or records of layers, got neither");
}

TEST(NeuralCollapseMeasure, RejectsBatchesThatDoNotBelongTogether) {
  const auto train = some_record(60, 1);
  const auto measure = make_measure("neural_collapse");
  measure->update(train);
  auto other = train;
  other.layers[0].name = "stem";
  EXPECT_EQ(error_of([&] { measure->update(other); }),
            "neural_collapse: every batch must have the same layers; layer 'conv' of 24 features "
            "became layer 'stem' of 24");
  other.layers.pop_back();
  EXPECT_EQ(error_of([&] { measure->update(other); }),
            "neural_collapse: every batch must have the same layers, 3, got 2");
  ASSERT_TRUE(measure->wants_train_again());
  measure->update(collapse_part(train, torch::arange(0, 50)));
  EXPECT_EQ(error_of([&] { measure->compute(); }),
            "neural_collapse: the second pass must show the samples of the first, 60, got 50");
}

TEST(NeuralCollapseMeasure, RejectsACutoffOutOfRange) {
  const auto making = [](double cutoff) {
    return error_of([&] { make_measure("neural_collapse", {{"cutoff", cutoff}}); });
  };
  EXPECT_EQ(making(1), "measure.neural_collapse.cutoff: must be in (0, 1), got 1");
  // Rounding would be inverted.
  EXPECT_EQ(making(0), "measure.neural_collapse.cutoff: must be in (0, 1), got 0");
}

}  // namespace kelvin::neural_collapse_test
