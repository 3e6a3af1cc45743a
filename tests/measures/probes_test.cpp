#include "kelvin/measures/probes.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::probes_test {

LayerRecord layer_of(const torch::Tensor& output, const torch::Tensor& before_add = {}) {
  LayerRecord layer;
  layer.name = "block";
  layer.output = output;
  layer.before_add = before_add;
  return layer;
}

TEST(ProbeFeatures, OfMapsAreAllOfThemOrTheirAverages) {
  const auto maps = torch::arange(2 * 3 * 4 * 4, torch::kFloat32).view({2, 3, 4, 4});
  const auto layer = layer_of(maps);
  const auto flat = flattened_rows(layer, ProbeTap::output);
  EXPECT_EQ(flat.sizes(), (std::vector<int64_t>{2, 48}));
  expect_close(std::get<0>(flat.sort(1)), maps.flatten(1), 0);
  expect_close(pooled_rows(layer, ProbeTap::output, 2),
               maps.view({2, 3, 2, 2, 2, 2}).mean({3, 5}).flatten(1), 1e-5);
}

TEST(ProbeFeatures, FlattenedShareTheMemoryOfChannelsLastMaps) {
  const auto maps =
      noise({2, 3, 4, 4}, 1).to(torch::kFloat32, false, false, torch::MemoryFormat::ChannelsLast);
  EXPECT_EQ(flattened_rows(layer_of(maps), ProbeTap::output).data_ptr(), maps.data_ptr());
}

TEST(ProbeFeatures, AreReadBeforeTheAddWhereThereIsOne) {
  const auto output = torch::ones({2, 3});
  const auto before = torch::zeros({2, 3});
  const auto block = layer_of(output, before);
  expect_close(flattened_rows(block, ProbeTap::before_add), before, 0);
  expect_close(flattened_rows(block, ProbeTap::output), output, 0);
  expect_close(pooled_rows(layer_of(output), ProbeTap::before_add, 2), output, 0);
  EXPECT_EQ(tap_text(block, ProbeTap::before_add), "after normalisation, before the residual add");
  EXPECT_EQ(tap_text(layer_of(output), ProbeTap::before_add), tap_text(block, ProbeTap::output));
  EXPECT_NE(tap_text(ProbeTap::before_add), tap_text(ProbeTap::output));
}

TEST(ProbeFeatures, PooledMustBeFinite) {
  const auto layer = layer_of(torch::full({2, 3}, std::numeric_limits<float>::infinity()));
  EXPECT_EQ(error_of([&] { pooled_rows(layer, ProbeTap::output, 2); }),
            "linear_probe: features of layer 'block' must be finite, hold NaN or infinity");
}

TEST(ProbeFeatures, NeedLabelsOfAtLeastTwoClasses) {
  Record record;
  record.classes = 1;
  record.labels = labels_of({0, 0});
  EXPECT_EQ(error_of([&] { check_labels(record); }),
            "linear_probe: needs at least 2 classes, the trained dataset has 1");
  record.classes = 3;
  record.ood = "svhn";
  record.labels = labels_of({0, 3});
  EXPECT_EQ(error_of([&] { check_labels(record); }),
            "linear_probe: labels of svhn must be in [0, 3), go from 0 to 3");
  record.labels = labels_of({-1, 2});
  EXPECT_EQ(error_of([&] { check_labels(record); }),
            "linear_probe: labels of svhn must be in [0, 3), go from -1 to 2");
  record.labels = torch::zeros({2, 2}, torch::kInt64);
  EXPECT_EQ(error_of([&] { check_labels(record); }),
            "linear_probe: labels must be whole numbers, one for each sample, got [2, 2]");
  record.labels = labels_of({0, 0, 2});  // a class without samples
  check_labels(record);
}

TEST(ProbeFeatures, NeedASampleForEachClass) {
  check_enough_samples(3, 3);
  EXPECT_EQ(error_of([] { check_enough_samples(2, 3); }),
            "linear_probe: needs at least as many training samples as classes, 3, got 2");
}

TEST(EffectiveDepth, IsTheFirstLayerThatReachesTheThresholdOverTheirNumber) {
  const std::vector<double> accuracies = {0.2, 0.5, 0.79, 0.8, 0.8};
  EXPECT_DOUBLE_EQ(effective_depth(accuracies, 5, 0.99), 4. / 5);
  EXPECT_DOUBLE_EQ(effective_depth(accuracies, 5, 0.95), 3. / 5);
  EXPECT_DOUBLE_EQ(effective_depth(accuracies, 5, 0.25), 1. / 5);
}

TEST(EffectiveDepth, CountsALayerThatReachesTheThresholdExactly) {
  EXPECT_DOUBLE_EQ(effective_depth({0.25, 0.5, 1}, 3, 0.5), 2. / 3);
  EXPECT_DOUBLE_EQ(effective_depth({0.25, 1, 1}, 3, 1), 2. / 3);
}

TEST(EffectiveDepth, LooksAtLayersUpToTheLastOnly) {
  const std::vector<double> accuracies = {0.2, 0.4, 0.4, 0.9};
  EXPECT_DOUBLE_EQ(effective_depth(accuracies, 4, 0.99), 1);
  EXPECT_DOUBLE_EQ(effective_depth(accuracies, 3, 0.99), 2. / 3);
  EXPECT_DOUBLE_EQ(effective_depth(accuracies, 1, 0.99), 1);
}

TEST(EffectiveDepth, IsOneOverTheLayersIfAllAreEqual) {
  EXPECT_DOUBLE_EQ(effective_depth({0.7, 0.7, 0.7, 0.7}, 4, 1), 0.25);
  EXPECT_DOUBLE_EQ(effective_depth({0, 0}, 2, 0.99), 0.5);
}

TEST(EffectiveDepth, FindsALayerBetterThanTheLast) {
  EXPECT_DOUBLE_EQ(effective_depth({0.3, 0.9, 0.6, 0.6}, 4, 0.99), 2. / 4);
}

TEST(EffectiveDepth, RejectsALastLayerThatIsNotThere) {
  EXPECT_EQ(error_of([] {
              effective_depth({0.1, 0.2}, 3, 0.99);
            }),
            "effective_depth: last must be in [1, 2], got 3");
  EXPECT_EQ(error_of([] {
              effective_depth({0.1, 0.2}, 0, 0.99);
            }),
            "effective_depth: last must be in [1, 2], got 0");
}

TEST(GeneralisationDrop, IsWhatTheLastLayerLosesOfTheBest) {
  EXPECT_DOUBLE_EQ(generalisation_drop({0.4, 0.8, 0.6}), 0.25);
  EXPECT_DOUBLE_EQ(generalisation_drop({0.5, 0}), 1);
}

TEST(GeneralisationDrop, IsZeroIfTheLastLayerIsTheBest) {
  EXPECT_EQ(generalisation_drop({0.1, 0.2, 0.3}), 0);
  EXPECT_EQ(generalisation_drop({0.3}), 0);
}

TEST(GeneralisationDrop, RejectsNoLayersAndNoRightAnswers) {
  EXPECT_EQ(error_of([] { generalisation_drop({}); }),
            "generalisation_drop: needs at least one layer");
  EXPECT_EQ(error_of([] {
              generalisation_drop({0, 0});
            }),
            "generalisation_drop: is undefined when no layer gets a sample right");
}

// Probes that get these shares of so many samples right; which ones is random.
std::vector<ProbeResult> probes_of(const std::vector<double>& shares, int64_t samples = 2000) {
  std::vector<ProbeResult> probes;
  for (size_t i = 0; i < shares.size(); ++i) {
    const auto order = noise({samples}, i).argsort().argsort();
    probes.push_back({.layer = "layer" + std::to_string(i),
                      .hits = order < shares[i] * static_cast<double>(samples),
                      .definition = {{"protocol", "diagnose"}, {"samples", samples}}});
  }
  return probes;
}

TEST(ProbeReadings, OfTheTrainedDatasetAreAccuraciesAndKappa) {
  const auto readings = probe_readings(probes_of({0.3, 0.8, 0.8}), "", {.threshold = 0.9});
  const auto accuracies = readings_of(readings, "probe_accuracy");
  ASSERT_EQ(accuracies.size(), 3U);
  EXPECT_EQ(accuracies[1].layer, "layer1");
  EXPECT_EQ(accuracies[1].split, "test");
  EXPECT_DOUBLE_EQ(accuracies[0].value, 0.3);
  const auto kappa = reading_of(readings, "kappa", {{"last_layer", "logits"}});
  EXPECT_DOUBLE_EQ(kappa.value, 2. / 3);
  EXPECT_EQ(kappa.definition["layers"], 3);
  EXPECT_EQ(kappa.definition["threshold"], 0.9);
  EXPECT_EQ(kappa.definition["protocol"], "diagnose");
  EXPECT_EQ(kappa.definition["tap"], "after normalisation, residual add and activation");
  EXPECT_DOUBLE_EQ(reading_of(readings, "kappa", {{"last_layer", "penultimate"}}).value, 1);
  EXPECT_TRUE(readings_of(readings, "rho").empty());
}

TEST(ProbeReadings, OfAOodDatasetAreAccuraciesAndRho) {
  const auto readings = probe_readings(probes_of({0.5, 0.8, 0.2}), "svhn", {});
  const auto rho = reading_of(readings, "rho");
  EXPECT_DOUBLE_EQ(rho.value, 0.75);
  EXPECT_EQ(rho.ood, "svhn");
  EXPECT_DOUBLE_EQ(reading_of(readings, "ood_retained").value, 0.25);
  EXPECT_TRUE(readings_of(readings, "kappa").empty());
  for (const auto& reading : readings) EXPECT_EQ(reading.ood, "svhn");
}

TEST(ProbeReadings, HaveIntervalsThatSayHowTheyWereFound) {
  for (const std::string ood : {"", "svhn"}) {
    for (const auto& reading : probe_readings(probes_of({0.5, 0.8, 0.2}), ood, {})) {
      ASSERT_TRUE(reading.interval) << reading.name;
      EXPECT_LE(reading.interval->low, reading.value) << reading.name;
      EXPECT_GE(reading.interval->high, reading.value) << reading.name;
      EXPECT_EQ(reading.definition["interval"], "95 %, bootstrap over test samples");
      EXPECT_EQ(reading.definition["resamples"], 1000);
    }
  }
}

TEST(ProbeReadings, IntervalsAreThoseOfNumPysBootstrap) {
  const auto probes = probes_of({0.5, 0.75, 0.6}, 500);
  const auto expected = oracle(R"(
hits = np.stack([x["0"], x["1"], x["2"]]).astype(float)
draws = np.random.default_rng(0).integers(0, hits.shape[1], (4000, hits.shape[1]))
means = hits[:, draws].mean(2)
rho = (means.max(0) - means[-1]) / means.max(0)
out["accuracy"] = np.percentile(means[0], [2.5, 97.5])
out["rho"] = np.percentile(rho, [2.5, 97.5])
)",
                               {{"0", probes[0].hits.to(torch::kFloat64)},
                                {"1", probes[1].hits.to(torch::kFloat64)},
                                {"2", probes[2].hits.to(torch::kFloat64)}});
  const auto readings = probe_readings(probes, "svhn", {});
  const auto expect_near = [&](const Reading& reading, const torch::Tensor& bounds) {
    EXPECT_NEAR(reading.interval->low, bounds[0].item<double>(), 0.012) << reading.name;
    EXPECT_NEAR(reading.interval->high, bounds[1].item<double>(), 0.012) << reading.name;
  };
  expect_near(readings[0], expected.at("accuracy"));
  expect_near(reading_of(readings, "rho"), expected.at("rho"));
}

TEST(ProbeReadings, ResampleTheSameSamplesForAllLayers) {
  // The second layer is right where the first is: their ratio never changes.
  auto probes = probes_of({0.5});
  probes.push_back(probes[0]);
  const auto rho = reading_of(probe_readings(probes, "svhn", {}), "rho");
  EXPECT_EQ(rho.interval->low, 0);
  EXPECT_EQ(rho.interval->high, 0);
}

TEST(ProbeReadings, OfOneLayerHaveNoPenultimate) {
  const auto readings = probe_readings(probes_of({0.5}), "", {});
  EXPECT_EQ(readings_of(readings, "kappa").size(), 1U);
  EXPECT_EQ(reading_of(readings, "kappa").value, 1);
}

TEST(ProbeReadings, LeaveOutRhoWhereNothingIsRight) {
  const auto readings = probe_readings(probes_of({0, 0}), "svhn", {});
  EXPECT_EQ(readings.size(), 2U);
  EXPECT_EQ(readings[0].value, 0);
  EXPECT_TRUE(readings_of(readings, "rho").empty());
}

TEST(ProbeReadings, OfAFewRightSamplesStillHaveAnInterval) {
  // Of 10 samples one is right: a third of the resamples have none, and say nothing about rho.
  const auto rho = reading_of(probe_readings(probes_of({0.1, 0}, 10), "svhn", {}), "rho");
  EXPECT_EQ(rho.value, 1);
  ASSERT_TRUE(rho.interval);
  EXPECT_EQ(rho.interval->low, 1);
}

TEST(ProbeReadings, LeaveOutKappaWhereTheLastLayerGetsNothingRight) {
  const auto kappas = readings_of(probe_readings(probes_of({0.2, 0.5, 0}), "", {}), "kappa");
  ASSERT_EQ(kappas.size(), 1U);
  EXPECT_EQ(kappas[0].definition["last_layer"], "penultimate");
  EXPECT_EQ(kappas[0].value, 1);
  EXPECT_TRUE(readings_of(probe_readings(probes_of({0, 0}), "", {}), "kappa").empty());
}

TEST(ProbeReadings, CountOnlyTheResamplesThatGiveANumber) {
  // Of 10 samples the last layer gets one right: a third of the resamples do not have it.
  const auto readings = probe_readings(probes_of({0, 0.1}, 10), "", {});
  const auto kappa = reading_of(readings, "kappa", {{"last_layer", "logits"}});
  EXPECT_EQ(kappa.value, 1);
  EXPECT_NEAR(kappa.definition["resamples"].get<double>(), 651, 60);
  ASSERT_TRUE(kappa.interval);
  EXPECT_EQ(kappa.interval->low, 1);
  EXPECT_EQ(readings[0].definition["resamples"], 1000);
}

TEST(ProbeReadings, SayThatKappaMeansNothingWhereTheLastProbeIsAtChance) {
  const auto caveat_of = [](std::vector<ProbeResult> probes, double chance) {
    for (auto& probe : probes) probe.chance = chance;
    const auto kappa =
        reading_of(probe_readings(probes, "", {}), "kappa", {{"last_layer", "logits"}});
    return kappa.definition.value("caveat", "");
  };
  EXPECT_EQ(caveat_of(probes_of({0.1, 0.11, 0.105}), 0.1),
            "the last probe is at chance (10.5 % right, 10 % by always naming the most frequent "
            "class), which any layer reaches");
  EXPECT_EQ(caveat_of(probes_of({0.1, 0.11, 0.2}), 0.1), "");
}

TEST(ProbeReadings, SayThatRhoMeansNothingWhereNoProbeIsBetterThanChance) {
  const auto caveat_of = [](std::vector<ProbeResult> probes) {
    for (auto& probe : probes) probe.chance = 0.2;
    return reading_of(probe_readings(probes, "svhn", {}), "rho").definition.value("caveat", "");
  };
  EXPECT_EQ(caveat_of(probes_of({0.2, 0.19})),
            "the best probe is at chance (20 % right, 20 % by always naming the most frequent "
            "class), so nothing can be lost");
  EXPECT_EQ(caveat_of(probes_of({0.5, 0.19})), "");
}

TEST(ChanceOf, IsTheShareOfTheMostFrequentClass) {
  EXPECT_DOUBLE_EQ(chance_of(labels_of({0, 2, 2, 1, 2})), 0.6);
}

}  // namespace kelvin::probes_test
