#include "kelvin/measures/probe_readings.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "kelvin/measures/effective_depth.h"
#include "tests/support/measured.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

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

TEST(ProbeReadings, OfAForeignDatasetAreAccuraciesAndRho) {
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

}  // namespace
}  // namespace kelvin
