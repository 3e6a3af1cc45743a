#include "kelvin/numerics/calibration.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::calibration_test {

// Logits of two classes that give the first one these probabilities.
torch::Tensor binary_logits(const std::vector<double>& shares) {
  const auto first = doubles(shares);
  return torch::stack({first.log(), (1 - first).log()}, 1);
}

struct Samples {
  torch::Tensor logits;
  torch::Tensor labels;
};

// Logits that know something of the labels, more confident than they should be.
Samples noisy_samples(int64_t samples, int64_t classes, uint64_t seed) {
  const auto logits = 3 * noise({samples, classes}, seed);
  const auto labels = (logits + 4 * noise({samples, classes}, seed + 1)).argmax(1);
  return {.logits = logits, .labels = labels};
}

double ece_of(const torch::Tensor& logits, const torch::Tensor& labels, int64_t bins = 15) {
  return calibration_quality(logits, labels, {.bins = bins}).ece;
}

TEST(Calibration, IsWhatPaperSays) {
  // Confidences 0.8, 0.8, 0.6; the second answer is wrong.
  const auto quality =
      calibration_quality(binary_logits({0.8, 0.2, 0.6}), labels_of({0, 0, 0}), {.bins = 2});
  EXPECT_EQ(quality.samples, 3);
  EXPECT_EQ(quality.classes, 2);
  EXPECT_DOUBLE_EQ(quality.accuracy, 2. / 3);
  EXPECT_NEAR(quality.nll, -std::log(0.8 * 0.2 * 0.6) / 3, 1e-15);
  EXPECT_NEAR(quality.brier, 2 * (0.2 * 0.2 + 0.8 * 0.8 + 0.4 * 0.4) / 3, 1e-15);
  // All are above 1/2: one bin of mean confidence 2.2 / 3 and accuracy 2 / 3.
  EXPECT_NEAR(quality.ece, 0.2 / 3, 1e-15);
  EXPECT_NEAR(quality.mce, 0.2 / 3, 1e-15);
  // 0.6 alone, then both of 0.8.
  EXPECT_NEAR(quality.ece_equal_mass, (0.4 + 0.6) / 3, 1e-15);
  // p(0) is 0.2 in one bin, 0.6 and 0.8 in the other; p(1) is 0.8 and 0.2, 0.4; all labels are 0.
  EXPECT_NEAR(quality.ece_classwise, (0.8 + 0.6 + 0.8 + 0.6) / 3 / 2, 1e-15);
  expect_close(quality.reliability.count, doubles({0, 3}), 0);
  expect_close(quality.reliability.confidence, doubles({0, 2.2 / 3}), 1e-15);
  expect_close(quality.reliability.accuracy, doubles({0, 2. / 3}), 1e-15);
}

TEST(Calibration, IsThatOfNumPy) {
  for (const auto& [classes, temperature, bins] :
       {std::tuple{5, 1.0, 15}, {10, 4.0, 10}, {3, 0.3, 7}, {2, 1.0, 1}}) {
    SCOPED_TRACE(classes);
    const auto [logits, labels] = noisy_samples(501, classes, static_cast<uint64_t>(classes));
    const auto expected = oracle(
        R"(
from scipy.special import softmax
m, y, t, bins = x["logits"], x["labels"], float(x["temperature"]), int(x["bins"])
n, classes = m.shape
p = softmax(m / t, axis=1)
out["nll"] = np.mean(-np.log(p[np.arange(n), y]))
out["brier"] = np.mean(np.sum((p - np.eye(classes)[y]) ** 2, axis=1))
conf, right = p.max(axis=1), (p.argmax(axis=1) == y).astype(float)
edges = np.arange(bins + 1) / bins
def gaps(conf, right):
    found = []
    for low, high in zip(edges[:-1], edges[1:]):
        inside = (conf > low) & (conf <= high)
        if inside.any():
            found.append((inside.mean(), abs(conf[inside].mean() - right[inside].mean())))
    return np.array(found)
out["ece"] = np.prod(gaps(conf, right), axis=1).sum()
out["mce"] = gaps(conf, right)[:, 1].max()
out["ece_classwise"] = np.mean([np.prod(gaps(p[:, c], (y == c).astype(float)), axis=1).sum()
                                for c in range(classes)])
)",
        {{"logits", logits},
         {"labels", labels},
         {"temperature", torch::tensor(temperature, torch::kFloat64)},
         {"bins", torch::tensor(bins)}});
    const auto ours =
        calibration_quality(logits, labels, {.temperature = temperature, .bins = bins});
    const std::map<std::string, double> values = {{"nll", ours.nll},
                                                  {"brier", ours.brier},
                                                  {"ece", ours.ece},
                                                  {"mce", ours.mce},
                                                  {"ece_classwise", ours.ece_classwise}};
    for (const auto& [name, value] : values) {
      EXPECT_NEAR(value, expected.at(name).item<double>(), 1e-12) << name;
    }
  }
}

TEST(Calibration, OfEqualMassIsThatOfNumPysEqualParts) {
  const auto [logits, labels] = noisy_samples(600, 10, 7);
  const auto expected = oracle(R"(
from scipy.special import softmax
p = softmax(x["logits"], axis=1)
conf, right = p.max(axis=1), (p.argmax(axis=1) == x["labels"]).astype(float)
order = np.argsort(conf).reshape(15, 40)
out["ece"] = np.mean(np.abs(conf[order].mean(axis=1) - right[order].mean(axis=1)))
)",
                               {{"logits", logits}, {"labels", labels}});
  const auto ours = calibration_quality(logits, labels).ece_equal_mass;
  EXPECT_NEAR(ours, expected.at("ece").item<double>(), 1e-12);
  EXPECT_GT(ours, 0.05);
}

TEST(Calibration, OfAPerfectModelIsZero) {
  // Four in five samples of confidence 0.8 are right.
  const auto quality =
      calibration_quality(binary_logits({0.8, 0.8, 0.8, 0.8, 0.8}), labels_of({0, 0, 0, 0, 1}));
  for (const double error :
       {quality.ece, quality.ece_equal_mass, quality.ece_classwise, quality.mce}) {
    EXPECT_NEAR(error, 0, 1e-15);
  }
}

// Confidence 1 is in the last bin, together with all others there.
TEST(Calibration, PutsFullConfidenceIntoTheLastBin) {
  const auto logits =
      torch::cat({binary_logits({0.96}), torch::tensor({{1e6, 0.0}}, torch::kFloat64)});
  const auto quality = calibration_quality(logits, labels_of({0, 1}));
  EXPECT_EQ(quality.reliability.count.size(0), 15);
  EXPECT_EQ(quality.reliability.count[14].item<double>(), 2);
  EXPECT_NEAR(quality.ece, std::abs(1.96 / 2 - 0.5), 1e-15);
  EXPECT_NEAR(quality.mce, std::abs(1.96 / 2 - 0.5), 1e-15);
}

// A class whose probability is 0 counts in its first bin, where it may be the label.
TEST(Calibration, PutsProbabilityZeroIntoTheFirstBin) {
  const auto quality = calibration_quality(torch::tensor({{1e6, 0.0}, {1e6, 0.0}}, torch::kFloat64),
                                           labels_of({1, 0}));
  // Both classes are off by one half: p(0) = 1, right once; p(1) = 0, right once.
  EXPECT_NEAR(quality.ece_classwise, 0.5, 1e-15);
}

// 0.2, 0.4 and 0.6 are not numbers that binary fractions can hold.
TEST(Calibration, PutsAnEdgeIntoTheLowerBinWhateverRounding) {
  for (const int64_t classes : {5, 10, 15}) {
    for (int64_t winner = 0; winner < classes; ++winner) {
      // The winner has 3/5, the others share the rest: sums are rounded in another order each time.
      auto shares =
          torch::full({1, classes}, 0.4 / static_cast<double>(classes - 1), torch::kFloat64);
      shares[0][winner] = 0.6;
      const auto quality =
          calibration_quality(shares.log() + 7, torch::full({1}, winner, torch::kInt64));
      EXPECT_EQ(quality.reliability.count[8].item<double>(), 1) << classes << " " << winner;
    }
  }
}

TEST(Calibration, OfEqualMassNeverPartsTies) {
  // Nine samples of one confidence, each with another winner, and one below them: whatever the
  // order, the nine are together, five of them right.
  auto logits = torch::zeros({10, 9}, torch::kFloat64);
  for (int64_t i = 0; i < 9; ++i) logits[i][i] = 4;
  logits[9][0] = 1;
  auto labels = torch::arange(10).remainder(9);
  labels.slice(0, 5, 9).fill_(0);
  const double high = std::exp(4) / (std::exp(4) + 8);
  const double low = std::exp(1) / (std::exp(1) + 8);
  const double expected = (std::abs(9 * high - 5) + (1 - low)) / 10;
  EXPECT_NEAR(calibration_quality(logits, labels).ece_equal_mass, expected, 1e-12);
  const auto order = labels_of({3, 9, 1, 7, 5, 0, 8, 2, 6, 4});
  EXPECT_NEAR(calibration_quality(logits.index_select(0, order), labels.index_select(0, order))
                  .ece_equal_mass,
              expected, 1e-12);
}

TEST(Calibration, OfEqualMassHasOneSamplePerBinIfThereAreFew) {
  const auto quality =
      calibration_quality(binary_logits({0.9, 0.7, 0.6}), labels_of({0, 1, 0}), {.bins = 15});
  EXPECT_NEAR(quality.ece_equal_mass, (0.1 + 0.7 + 0.4) / 3, 1e-15);
}

TEST(Calibration, IgnoresAConstantPerSampleTheOrderOfClassesAndOfSamples) {
  const auto [logits, labels] = noisy_samples(200, 6, 20);
  const auto expected = calibration_quality(logits, labels);
  const auto order = torch::randperm(200, torch::kInt64);
  for (const auto& [other, other_labels] :
       {std::pair{logits + 100 * noise({200, 1}, 21), labels},
        std::pair{logits.flip(1), 5 - labels},
        std::pair{logits.index_select(0, order), labels.index_select(0, order)}}) {
    const auto quality = calibration_quality(other, other_labels);
    EXPECT_NEAR(quality.nll, expected.nll, 1e-11);
    EXPECT_NEAR(quality.brier, expected.brier, 1e-11);
    EXPECT_NEAR(quality.ece, expected.ece, 1e-11);
    EXPECT_NEAR(quality.ece_equal_mass, expected.ece_equal_mass, 1e-11);
    EXPECT_NEAR(quality.ece_classwise, expected.ece_classwise, 1e-11);
    EXPECT_NEAR(quality.mce, expected.mce, 1e-11);
  }
}

TEST(Calibration, DividesByTheTemperature) {
  const auto [logits, labels] = noisy_samples(100, 4, 30);
  const auto quality = calibration_quality(logits, labels, {.temperature = 2.5});
  const auto expected = calibration_quality(logits / 2.5, labels);
  EXPECT_NEAR(quality.nll, expected.nll, 1e-13);
  EXPECT_NEAR(quality.ece, expected.ece, 1e-13);
  EXPECT_NEAR(quality.ece_classwise, expected.ece_classwise, 1e-13);
}

TEST(Calibration, StaysFiniteForHugeLogitsAndTinyTemperatures) {
  const auto logits = torch::tensor({{1e6, -1e6, 0.0}, {-1e6, 1e6, 1e6}}, torch::kFloat64);
  for (const double temperature : {1.0, 1e-6, 1e6}) {
    const auto quality =
        calibration_quality(logits, labels_of({1, 1}), {.temperature = temperature});
    for (const double value : {quality.nll, quality.brier, quality.ece, quality.ece_equal_mass,
                               quality.ece_classwise, quality.mce}) {
      EXPECT_TRUE(std::isfinite(value)) << temperature;
    }
  }
  const auto quality = calibration_quality(logits, labels_of({1, 1}));
  EXPECT_NEAR(quality.nll, (2e6 + std::log(2)) / 2, 1e-9);
  EXPECT_NEAR(quality.brier, (2 + 0.5) / 2, 1e-15);
}

TEST(Calibration, OfLogitsThatSayNothingIsTheDistanceToChance) {
  const auto quality = calibration_quality(torch::zeros({10, 5}), torch::arange(10) % 5);
  EXPECT_NEAR(quality.nll, std::log(5), 1e-15);
  EXPECT_NEAR(quality.ece, 0, 1e-15);  // the first class is named, and right in one of five
  EXPECT_NEAR(quality.ece_classwise, 0, 1e-15);
  EXPECT_NEAR(quality.brier, 0.8, 1e-15);
}

TEST(Calibration, OfASingleClassIsCertain) {
  const auto quality = calibration_quality(torch::tensor({{3.F}, {-2.F}}), labels_of({0, 0}));
  EXPECT_EQ(quality.nll, 0);
  EXPECT_EQ(quality.brier, 0);
  EXPECT_EQ(quality.ece, 0);
  EXPECT_EQ(quality.accuracy, 1);
}

TEST(Calibration, DoesNotDependOnHowSamplesAreCut) {
  // More than what is looked at at a time.
  const auto [logits, labels] = noisy_samples(700, 400, 40);
  const auto whole = calibration_quality(logits, labels);
  CalibrationSums sums;
  for (int64_t first = 0; first < 700; first += 77) {
    sums.update(logits.slice(0, first, first + 77), labels.slice(0, first, first + 77));
  }
  const auto cut = sums.quality();
  EXPECT_EQ(cut.nll, whole.nll);
  EXPECT_EQ(cut.brier, whole.brier);
  EXPECT_EQ(cut.ece, whole.ece);
  EXPECT_EQ(cut.ece_equal_mass, whole.ece_equal_mass);
  EXPECT_EQ(cut.ece_classwise, whole.ece_classwise);
  EXPECT_EQ(cut.mce, whole.mce);
}

TEST(Calibration, MergedIntoNothingLeavesItsSourceAlone) {
  const auto [logits, labels] = noisy_samples(50, 4, 50);
  CalibrationSums first;
  first.update(logits, labels);
  const double before = first.quality().ece_classwise;
  CalibrationSums merged;
  merged.merge(CalibrationSums());
  EXPECT_TRUE(merged.state().empty());
  merged.merge(first);
  merged.update(logits, (labels + 1) % 4);
  EXPECT_EQ(first.quality().ece_classwise, before);
  EXPECT_EQ(merged.samples(), 100);
}

TEST(Calibration, SaysHowMuchItHolds) {
  // Seven numbers for each sample, two for each class and bin, six for each bin.
  EXPECT_EQ(CalibrationSums::bytes(2, 10, 15), 8 * (70 + 60 + 90 + 60));
  EXPECT_LT(CalibrationSums::bytes(1000, 50'000, 15), int64_t{8} << 20);
}

TEST(Calibration, RejectsWhatItCannotUse) {
  const auto logits = torch::zeros({2, 3}, torch::kFloat64);
  const auto labels = labels_of({0, 1});
  EXPECT_EQ(error_of([&] { calibration_quality(logits, labels, {.temperature = 0}); }),
            "calibration: temperature must be a finite number above 0, got 0");
  EXPECT_EQ(error_of([&] { calibration_quality(logits, labels, {.bins = 0}); }),
            "calibration: bins must be from 1 to 65536, got 0");
  EXPECT_EQ(error_of([&] {
              ece_of(logits, labels_of({0, 3}));
            }),
            "calibration: labels must be in [0, 3), got 3 for sample 1");
  EXPECT_EQ(error_of([&] { ece_of(logits / 0, labels); }),
            "calibration: logits must be finite, have a NaN or an infinity");
  EXPECT_EQ(error_of([&] {
              ece_of(torch::tensor({{1e308, -1e308}}, torch::kFloat64), labels_of({1}));
            }),
            "calibration: logits over the temperature differ by more than double precision can "
            "hold");
  CalibrationSums sums;
  EXPECT_EQ(error_of([&] { sums.quality(); }), "calibration: needs at least one sample, got none");
  sums.update(logits, labels);
  EXPECT_EQ(error_of([&] {
              sums.update(torch::zeros({2, 4}), labels);
            }),
            "calibration: logits must have 3 classes as before, got [2, 4]");
  CalibrationSums other;
  other.update(torch::zeros({2, 4}), labels);
  EXPECT_EQ(error_of([&] { sums.merge(other); }), "calibration: cannot merge 3 and 4 classes");
}

}  // namespace kelvin::calibration_test
