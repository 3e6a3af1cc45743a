#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <set>
#include <string>

#include "kelvin/report/page/glossary.h"
#include "tests/support/collapse_records.h"
#include "tests/support/oracle.h"

namespace kelvin::neural_collapse_test {

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
  EXPECT_NEAR(layer_value(readings, "nc1_trace_pinv"), 0, 1e-15);
  EXPECT_NEAR(layer_value(readings, "nc1_trace_ratio"), (2.0 / 5) / (8.0 / 3), 1e-15);
  EXPECT_NEAR(layer_value(readings, "nc1_cdnv"), (1.0 / 32 + 1.0 / 8 + 0) / 3, 1e-15);
  EXPECT_NEAR(layer_value(readings, "nc2_equinorm"), std::sqrt(4.0 / 3) / (4.0 / 3), 1e-15);
  // The third mean has no direction, and there is no classifier.
  EXPECT_FALSE(has_reading(readings, "nc2_equiangular", ""));
  EXPECT_FALSE(has_reading(readings, "nc3_self_duality", ""));
  // Predicted are 0, 1, 2, 0 and 0, nearest are 0, 0, 1, 1 and 2.
  EXPECT_NEAR(layer_value(readings, "nc4_ncc_mismatch"), 4.0 / 5, 1e-15);
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
  EXPECT_GT(layer_value(readings, "nc1_trace_pinv"), 0.1);
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
    EXPECT_NEAR(layer_value(readings, name), wanted, 1e-6 * wanted) << name;
  }
  EXPECT_EQ(layer_reading(readings, "nc1_trace_svd", "").definition["directions"], 4);
  EXPECT_FALSE(layer_reading(readings, "nc1_trace_svd", "").definition.contains("cutoff"));
  EXPECT_GT(layer_value(readings, "nc1_trace_svd"), 100 * layer_value(readings, "nc1_trace_pinv"));
  EXPECT_DOUBLE_EQ(layer_value(readings, "nc1_trace_svd_unscaled"),
                   kClasses * layer_value(readings, "nc1_trace_svd"));
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
    EXPECT_NEAR(reading.value, layer_value(expected, reading.name, reading.layer), 1e-9)
        << reading.name;
  }
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
  EXPECT_NEAR(layer_value(collapse_of({record}, {ood}), "orthodev"), 0, 1e-15);
  // OOD features that are zero have no direction.
  ood.features = torch::zeros({12, 7}, torch::kFloat64);
  EXPECT_FALSE(has_reading(collapse_of({record}, {ood}), "orthodev", ""));
}

}  // namespace kelvin::neural_collapse_test
