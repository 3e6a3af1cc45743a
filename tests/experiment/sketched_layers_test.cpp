#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <set>

#include "tests/support/measured.h"
#include "tests/support/published_network.h"

namespace kelvin::sketched_layers_test {

// Layers of the published ResNet-20: 16384, 8192 and 4096 features.
const std::set<std::string> kLayers = {"conv1", "layer1.2.conv2", "layer2.0.conv2",
                                       "layer3.2.conv2"};
constexpr int64_t kSamples = 2500;

class SketchedLayersSlow : public PublishedNetwork {};

NamedTensors spectra_of(const Measure& measure, const std::string& prefix = "") {
  NamedTensors spectra;
  const auto curves = measure.curves();
  for (const auto& layer : kLayers)
    spectra[layer] = curves.at(c10::str(prefix, "spectrum/", layer));
  return spectra;
}

double error_of_top(const torch::Tensor& values, const torch::Tensor& exact, int64_t count) {
  return (values.narrow(0, 0, count) / exact.narrow(0, 0, count) - 1).abs().max().item<double>();
}

// Sketches of real layers beside their exact spectra.
TEST_F(SketchedLayersSlow, AreWithinTheirStatedBounds) {
  const auto shown = records(kSamples, kLayers);
  const MeasureContext context{.test_samples = kSamples};
  const auto exact = make_measure("layer_spectrum", {{"protocol", "exact"}}, context);
  const auto sketch = make_measure("layer_spectrum", {}, context);
  const auto plain = make_measure("layer_spectrum", {{"anchors", 0}}, context);
  const auto enlarged = make_measure("layer_spectrum", {{"enlarge", true}}, context);
  for (auto* measure : {exact.get(), sketch.get(), plain.get(), enlarged.get()}) {
    show(*measure, shown);
  }
  const auto wanted = spectra_of(*exact, "exact_");
  const auto values = spectra_of(*sketch);
  const auto values_without_anchors = spectra_of(*plain);
  const auto values_enlarged = spectra_of(*enlarged);
  for (const auto& layer : kLayers) {
    const auto of_layer = [&](const Measure& measure) {
      for (const auto& reading : measure.compute()) {
        if (reading.name == "covariance_rank" && reading.layer == layer) return reading;
      }
      return Reading{};
    };
    const auto rank = of_layer(*sketch);
    const auto true_rank = of_layer(*exact).value;
    const auto bounds = rank.definition.at("rank_bounds");
    EXPECT_LE(bounds[0].get<double>(), true_rank) << layer;
    EXPECT_GE(bounds[1].get<double>(), true_rank) << layer;
    EXPECT_EQ(of_layer(*enlarged).value, true_rank) << layer;
    EXPECT_LT(error_of_top(values_enlarged.at(layer), wanted.at(layer), 50), 0.01) << layer;
    const double error = error_of_top(values.at(layer), wanted.at(layer), 50);
    EXPECT_LT(error, 0.01) << layer;
    // What anchors are for.
    const double error_without =
        error_of_top(values_without_anchors.at(layer), wanted.at(layer), 50);
    EXPECT_LT(1.5 * error, error_without) << layer;
    EXPECT_LT(error_of_top(values.at(layer), wanted.at(layer), 10), 0.01) << layer;
    RecordProperty(
        layer, c10::str("rank ", rank.value, " of ", true_rank, ", bounds ", bounds.dump(),
                        ", reliable ", rank.definition.at("is_reliable").dump(), ", top 50 off by ",
                        error, ", without anchors ", error_without));
  }
}

// Four times 600 is still fewer numbers than samples and features, and enough for ranks at a large
// gamma, so that what they become is a sketch.
TEST_F(SketchedLayersSlow, AreWithinTheirBoundsOnceTheyAreEnlarged) {
  const auto shown = records(kSamples, kLayers);
  const MeasureContext context{.test_samples = kSamples};
  const auto exact = make_measure("layer_spectrum", {{"protocol", "exact"}}, context);
  const auto enlarged = make_measure(
      "layer_spectrum", {{"sketch", 600}, {"gamma", 1e-2}, {"enlarge", true}}, context);
  for (auto* measure : {exact.get(), enlarged.get()}) show(*measure, shown);
  const auto wanted = spectra_of(*exact, "exact_");
  const auto values = spectra_of(*enlarged);
  const auto ranks = readings_of(enlarged->compute(), "covariance_rank");
  const auto true_ranks = readings_of(exact->compute(), "covariance_rank");
  EXPECT_EQ(ranks.size(), 3 * kLayers.size());
  for (const auto& rank : ranks) {
    const auto& gamma = rank.definition.at("gamma");
    const auto found = std::find_if(true_ranks.begin(), true_ranks.end(), [&](const auto& other) {
      return other.layer == rank.layer && other.definition.at("gamma") == gamma;
    });
    ASSERT_NE(found, true_ranks.end());
    EXPECT_EQ(rank.definition.value("sketch", 0), 2400) << rank.layer;
    const auto bounds = rank.definition.at("rank_bounds");
    EXPECT_LE(bounds[0].get<double>(), found->value) << rank.layer << " " << gamma;
    EXPECT_GE(bounds[1].get<double>(), found->value) << rank.layer << " " << gamma;
    if (gamma != 1e-2) continue;
    EXPECT_EQ(rank.definition.at("is_reliable"), true) << rank.layer;
    EXPECT_NEAR(rank.value / found->value, 1, 0.1) << rank.layer;
    const double error = error_of_top(values.at(rank.layer), wanted.at(rank.layer), 50);
    EXPECT_LT(error, 0.01) << rank.layer;
    EXPECT_GT(error, 1e-6) << rank.layer;  // not exact
    RecordProperty(rank.layer, c10::str("rank ", rank.value, " of ", found->value, ", bounds ",
                                        bounds.dump(), ", top 50 off by ", error));
  }
}

}  // namespace kelvin::sketched_layers_test
