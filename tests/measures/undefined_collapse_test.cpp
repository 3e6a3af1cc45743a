#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <set>
#include <string>

#include "tests/support/collapse_records.h"
#include "tests/support/errors.h"

namespace kelvin::undefined_collapse_test {

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
    EXPECT_NEAR(reading.value, layer_value(expected, name), 1e-12) << name;
    EXPECT_EQ(reading.definition["classes"], 4);
    EXPECT_EQ(reading.definition["missing_classes"], 1);
  }
  // The weight alone has all of its rows.
  EXPECT_EQ(layer_reading(readings, "nc2_weight_etf_error", "").definition["classes"], 5);
}

TEST(NeuralCollapseMeasure, TakesFewerSamplesThanClasses) {
  const auto record = collapse_part(some_record(60, 1), labels_of({0, 1, 2}));
  const auto readings = collapse_of({record});
  EXPECT_NEAR(layer_value(readings, "nc1_trace_pinv"), 0, 1e-25);
  EXPECT_NEAR(layer_value(readings, "nc1_trace_ratio"), 0, 1e-25);
  EXPECT_GT(layer_reading(readings, "nc2_etf_error", "").definition["missing_classes"], 0);
}

TEST(NeuralCollapseMeasure, TakesMoreClassesThanFeatures) {
  auto record = some_record(60, 1);
  record.layers = {output_of("narrow", record.features.narrow(1, 0, 2))};
  const auto readings = collapse_of({record});
  EXPECT_EQ(names_in(readings, "narrow"), kOfLayers);
  EXPECT_EQ(layer_reading(readings, "nc1_trace_pinv", "narrow").definition["directions"], 2);
  // Two dimensions hold no simplex of five.
  EXPECT_GT(layer_value(readings, "nc2_etf_error", "narrow"), 0.3);
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
  EXPECT_EQ(layer_value(readings, "nc3_dual_variance"), 0);
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

TEST(NeuralCollapseMeasure, RejectsACutoffOutOfRange) {
  const auto making = [](double cutoff) {
    return error_of([&] { make_measure("neural_collapse", {{"cutoff", cutoff}}); });
  };
  EXPECT_EQ(making(1), "measure.neural_collapse.cutoff: must be in (0, 1), got 1");
  // Rounding would be inverted.
  EXPECT_EQ(making(0), "measure.neural_collapse.cutoff: must be in (0, 1), got 0");
}

}  // namespace kelvin::undefined_collapse_test
