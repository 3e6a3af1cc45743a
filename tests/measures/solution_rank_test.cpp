#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::solution_rank_test {

constexpr int64_t kClasses = 8;

Record logits_record(const torch::Tensor& logits) {
  return record_of(logits, torch::zeros({logits.size(0)}, torch::kInt64));
}

// A linear classifier with a bias on features of this width.
Record classifier_record(int64_t samples, int64_t width) {
  const auto features = noise({samples, width}, 0);
  const auto weight = noise({kClasses, width}, 1);
  const auto bias = noise({kClasses}, 2);
  auto record = logits_record(features.matmul(weight.t()) + bias);
  record.weight = weight;
  record.bias = bias;
  return record;
}

// The rank of one variant, not a point of the curve over gamma.
Reading rank_reading(const Readings& readings, const Definition& variant, double gamma = 1e-3) {
  auto definition = variant;
  definition["gamma"] = gamma;
  Readings found;
  for (const auto& reading : readings_of(readings, "solution_rank", definition)) {
    if (!reading.index) found.push_back(reading);
  }
  EXPECT_EQ(found.size(), 1U) << definition;
  return found.empty() ? Reading{} : found.front();
}

double rank_of(const Readings& readings, const Definition& variant, double gamma = 1e-3) {
  return rank_reading(readings, variant, gamma).value;
}

const Definition kRaw = {{"shift_free", false}, {"bias", true}};
const Definition kShiftFree = {{"shift_free", true}, {"bias", true}};
const Definition kRawWithoutBias = {{"shift_free", false}, {"bias", false}};
const Definition kShiftFreeWithoutBias = {{"shift_free", true}, {"bias", false}};

TEST(SolutionRank, OfLogitsThatAreEqualAcrossClassesIsZero) {
  const auto readings =
      measured("solution_rank", {logits_record(torch::full({20, kClasses}, 0.3))});
  EXPECT_EQ(rank_of(readings, kShiftFree), 0);
  EXPECT_EQ(rank_of(readings, kRaw), 1);
  for (const char* name : {"effective_rank", "rankme", "stable_rank", "participation_ratio"}) {
    EXPECT_TRUE(readings_of(readings, name, kShiftFree).empty()) << name;
    EXPECT_NEAR(reading_of(readings, name, kRaw).value, 1, 1e-4) << name;
  }
}

TEST(SolutionRank, RejectsLogitsThatAreNotFinite) {
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    auto logits = noise({20, kClasses}, 3);
    logits[1][2] = value;
    EXPECT_EQ(error_of([&] { measured("solution_rank", {logits_record(logits)}); }),
              "solution_rank: logits must be finite, got a NaN or an infinity");
  }
}

TEST(SolutionRank, OfLowRankLogitsIsTheirRank) {
  for (const int64_t inner : {1, 3, 6}) {
    const auto logits = noise({50, inner}, 3).matmul(noise({inner, kClasses}, 4));
    const auto readings = measured("solution_rank", {logits_record(logits)});
    for (const double gamma : {1e-2, 1e-3, 1e-4}) {
      EXPECT_EQ(rank_of(readings, kRaw, gamma), inner);
      EXPECT_EQ(rank_of(readings, kShiftFree, gamma), inner);
    }
  }
}

TEST(SolutionRank, WithoutShiftsIsAtMostClassesMinusOne) {
  const auto readings = measured("solution_rank", {logits_record(noise({50, kClasses}, 5))});
  EXPECT_EQ(rank_of(readings, kRaw), kClasses);
  EXPECT_EQ(rank_of(readings, kShiftFree), kClasses - 1);
  EXPECT_EQ(rank_of(readings, kShiftFree, 1e-4), kClasses - 1);
}

TEST(SolutionRank, WithoutShiftsIgnoresAConstantPerSample) {
  const auto logits = noise({50, 3}, 6).matmul(noise({3, kClasses}, 7));
  const auto plain = measured("solution_rank", {logits_record(logits)});
  const auto shifted = measured("solution_rank", {logits_record(logits + 20 * noise({50, 1}, 8))});
  EXPECT_EQ(rank_of(shifted, kRaw), rank_of(plain, kRaw) + 1);
  EXPECT_EQ(rank_of(shifted, kShiftFree), rank_of(plain, kShiftFree));
  const auto values = readings_of(plain, "singular_value");
  const auto shifted_values = readings_of(shifted, "singular_value");
  ASSERT_EQ(values.size(), shifted_values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(shifted_values[i].value, values[i].value, 1e-4 * values[0].value);
  }
}

TEST(SolutionRank, WithABiasIsOneMore) {
  const auto readings = measured("solution_rank", {classifier_record(60, 3)});
  EXPECT_EQ(rank_of(readings, kRaw), 4);
  EXPECT_EQ(rank_of(readings, kShiftFree), 4);
  EXPECT_EQ(rank_of(readings, kRawWithoutBias), 3);
  EXPECT_EQ(rank_of(readings, kShiftFreeWithoutBias), 3);
}

TEST(SolutionRank, OfAClassifierWithoutABiasHasNoVariantWithoutOne) {
  const auto readings = measured("solution_rank", {logits_record(noise({9, 3}, 9))});
  EXPECT_TRUE(readings_of(readings, "solution_rank", {{"bias", false}}).empty());
}

TEST(SolutionRank, KnowsTheCeilingThatClassesWidthAndSamplesSet) {
  struct Case {
    Record record;
    Definition variant;
    int64_t upper_bound;
    bool bound_by_width;
  };
  const auto narrow = classifier_record(60, 3);
  const auto wide = classifier_record(60, 20);
  auto without_bias = logits_record(noise({60, 3}, 10).matmul(noise({3, kClasses}, 11)));
  without_bias.weight = noise({kClasses, 3}, 11);
  const auto unknown_width = logits_record(noise({60, kClasses}, 12));
  const std::vector<Case> cases = {{narrow, kRaw, 4, true},
                                   {narrow, kShiftFree, 4, true},
                                   {narrow, kRawWithoutBias, 3, true},
                                   {narrow, kShiftFreeWithoutBias, 3, true},
                                   {wide, kRaw, 8, false},
                                   {wide, kShiftFree, 7, false},
                                   {wide, kRawWithoutBias, 8, false},
                                   {wide, kShiftFreeWithoutBias, 7, false},
                                   {classifier_record(2, 20), kShiftFree, 2, false},
                                   {without_bias, kShiftFree, 3, true},
                                   {unknown_width, kRaw, 8, false},
                                   {unknown_width, kShiftFree, 7, false}};
  for (const auto& [record, variant, upper_bound, bound_by_width] : cases) {
    const auto reading = rank_reading(measured("solution_rank", {record}), variant);
    EXPECT_EQ(reading.definition["upper_bound"], upper_bound) << reading.definition;
    EXPECT_EQ(reading.definition["bound_by_width"], bound_by_width) << reading.definition;
    EXPECT_EQ(reading.value, upper_bound) << reading.definition;  // random logits reach it
  }
}

TEST(SolutionRank, AgreesWithNumPyInEveryReading) {
  // Directions fade over five decades, so that every gamma cuts somewhere else.
  const auto fading = torch::logspace(0, -5, 10, 10, torch::kFloat64);
  const auto weight = (noise({kClasses, 10}, 13) * fading).to(torch::kFloat32);
  const auto bias = 0.1 * noise({kClasses}, 14).to(torch::kFloat32);
  const auto features = noise({60, 10}, 15).to(torch::kFloat32);
  auto record = logits_record(features.matmul(weight.t()) + bias);
  record.weight = weight;
  record.bias = bias;
  const auto readings = measured("solution_rank", {record}, {{"gamma", 0.03}});
  const auto expected = oracle(
      R"(
def spectrum(shift_free, bias):
    m = x["logits"].astype(float) - (0 if bias else x["bias"].astype(float))
    return np.linalg.svd(m - m.mean(1, keepdims=True) * shift_free, compute_uv=False)
def ranks(s, gammas):
    return np.array([np.sum(s > g * s[0]) for g in gammas], dtype=float)
for shift_free in (0, 1):
    for bias in (0, 1):
        out[f"ranks{shift_free}{bias}"] = ranks(spectrum(shift_free, bias), x["gammas"])
s = spectrum(1, 1)
out["values"] = s
out["gammas"] = np.logspace(-4, -1, 25)
out["curve"] = ranks(s, out["gammas"])
def other_ranks(s, exact):
    p = s[:exact] / s.sum()
    q = s / s.sum() + 1e-7
    return np.array([np.exp(-np.sum(p * np.log(p))), np.exp(-np.sum(q * np.log(q))),
                     np.sum(s**2) / s[0]**2, np.sum(s**2)**2 / np.sum(s**4)])
for shift_free in (0, 1):
    for bias in (0, 1):
        s = spectrum(shift_free, bias)
        out[f"others{shift_free}{bias}"] = other_ranks(s, len(s) - shift_free)
)",
      {{"logits", record.logits}, {"bias", bias}, {"gammas", doubles({0.03, 1e-2, 1e-3, 1e-4})}});

  for (const bool shift_free : {false, true}) {
    for (const bool with_bias : {false, true}) {
      std::vector<double> ranks;
      for (const double gamma : {0.03, 1e-2, 1e-3, 1e-4}) {
        ranks.push_back(
            rank_of(readings, {{"shift_free", shift_free}, {"bias", with_bias}}, gamma));
      }
      const auto key = std::to_string(int{shift_free}) + std::to_string(int{with_bias});
      expect_close(doubles(ranks), expected.at("ranks" + key), 0);
      EXPECT_LT(ranks.front(), ranks.back()) << "the cases are all alike";
      std::vector<double> others;
      for (const char* name : {"effective_rank", "rankme", "stable_rank", "participation_ratio"}) {
        const Definition variant = {{"shift_free", shift_free}, {"bias", with_bias}};
        others.push_back(reading_of(readings, name, variant).value);
      }
      const auto& wanted = expected.at("others" + key);
      expect_close(doubles(others) / wanted, torch::ones_like(wanted), 1e-6);
    }
  }

  std::vector<double> gammas;
  std::vector<double> curve;
  for (const auto& reading : readings_of(readings, "solution_rank", {{"curve", true}})) {
    EXPECT_EQ(reading.index, static_cast<int64_t>(curve.size()));
    EXPECT_EQ(reading.definition["shift_free"], true);
    gammas.push_back(reading.definition["gamma"]);
    curve.push_back(reading.value);
  }
  expect_close(doubles(gammas), expected.at("gammas"), 1e-15);
  expect_close(doubles(curve), expected.at("curve"), 0);

  std::vector<double> values;
  for (const auto& reading : readings_of(readings, "singular_value", kShiftFree)) {
    EXPECT_EQ(reading.index, static_cast<int64_t>(values.size()));
    values.push_back(reading.value);
  }
  expect_close(doubles(values), expected.at("values"), 1e-6 * values.at(0));
}

TEST(SolutionRank, ListsTheDefaultVariantOfEachNameFirst) {
  const auto readings = measured("solution_rank", {classifier_record(60, 20)});
  for (const char* name : {"solution_rank", "effective_rank", "rankme", "stable_rank",
                           "participation_ratio", "singular_value"}) {
    const auto all = readings_of(readings, name);
    const auto shift_free = readings_of(readings, name, kShiftFree);
    ASSERT_FALSE(all.empty()) << name;
    expect_same({all.front()}, {shift_free.front()});
  }
  for (const char* name : {"effective_rank", "rankme", "stable_rank", "participation_ratio"}) {
    EXPECT_EQ(readings_of(readings, name).size(), 4U) << name;
    const auto reading = reading_of(readings, name, kShiftFree);
    EXPECT_EQ(reading.definition["upper_bound"], kClasses - 1) << name;
    EXPECT_FALSE(reading.definition.contains("gamma")) << name;
    EXPECT_LT(reading.value, kClasses - 1) << name;
  }
  // Consumers take all of these for the spectrum of the default variant.
  EXPECT_EQ(readings_of(readings, "singular_value").size(), static_cast<size_t>(kClasses));
}

TEST(SolutionRank, HoldsOneMatrixOfClassesForEachVariant) {
  const auto record = classifier_record(60, 20);
  EXPECT_EQ(make_measure("solution_rank")->memory(record, 1000), 4 * kClasses * kClasses * 8);
}

TEST(SolutionRank, IgnoresTheScaleOfTheLogits) {
  const auto record = classifier_record(40, 5);
  auto scaled = record;
  scaled.logits = 1e4 * record.logits;
  scaled.bias = 1e4 * record.bias;
  const auto plain = readings_of(measured("solution_rank", {record}), "solution_rank");
  const auto large = readings_of(measured("solution_rank", {scaled}), "solution_rank");
  expect_same(large, plain);
}

TEST(SolutionRank, IgnoresHowSamplesAreBatched) {
  const auto whole = classifier_record(40, 5);
  auto first = whole;
  first.logits = whole.logits.slice(0, 0, 11);
  auto rest = whole;
  rest.logits = whole.logits.slice(0, 11);
  const auto expected = measured("solution_rank", {whole});
  expect_same(measured("solution_rank", {first, rest}), expected, 1e-5);

  auto merged = make_measure("solution_rank");
  const auto ours = make_measure("solution_rank");
  const auto theirs = make_measure("solution_rank");
  ours->update(first);
  theirs->update(rest);
  merged->merge(*make_measure("solution_rank"));  // saw nothing
  merged->merge(*ours);
  merged->merge(*theirs);
  expect_same(merged->compute(), expected, 1e-5);
}

TEST(SolutionRank, IgnoresTrainingAndOodSamples) {
  auto train = classifier_record(40, 8);
  train.split = Split::train;
  auto ood = classifier_record(40, 8);
  ood.ood = "textures";
  const auto test = classifier_record(40, 2);
  expect_same(measured("solution_rank", {train, test, ood}), measured("solution_rank", {test}));
  EXPECT_EQ(error_of([&] {
              measured("solution_rank", {train, ood});
            }),
            "solution_rank: no records of the test split were shown");
}

TEST(SolutionRank, OfOneSampleIsOne) {
  const auto readings = measured("solution_rank", {logits_record(noise({1, kClasses}, 16))});
  EXPECT_EQ(rank_of(readings, kRaw), 1);
  EXPECT_EQ(rank_of(readings, kShiftFree), 1);
  EXPECT_EQ(readings_of(readings, "singular_value").size(), 1U);
}

TEST(SolutionRank, ListsItsOwnGammaOnceAndFirst) {
  for (const double gamma : {1e-2, 0.05}) {
    const auto readings =
        measured("solution_rank", {logits_record(noise({9, 3}, 17))}, {{"gamma", gamma}});
    EXPECT_EQ(readings.front().definition["gamma"], gamma);
    EXPECT_EQ(rank_of(readings, kShiftFree, gamma), 2);
    EXPECT_EQ(rank_of(readings, kShiftFree, 1e-3), 2);
  }
}

TEST(SolutionRank, RejectsAGammaOutsideZeroToOne) {
  for (const double gamma : {0.0, 1.0, -0.5}) {
    EXPECT_TRUE(error_of([&] {
                  make_measure("solution_rank", {{"gamma", gamma}});
                }).starts_with("measure.solution_rank.gamma: must be in (0, 1), got "));
  }
}

TEST(SolutionRank, SaysWhenThereAreFewerSamplesThanItCouldTellApart) {
  const auto caveat_of = [](int64_t samples) {
    const auto readings = measured("solution_rank", {logits_record(noise({samples, kClasses}, 3))});
    return rank_reading(readings, kShiftFree).definition.value("caveat", "");
  };
  EXPECT_EQ(caveat_of(5),
            "5 samples cannot show a rank above 5, and 7 is possible: take more samples");
  EXPECT_EQ(caveat_of(7), "");
}

}  // namespace kelvin::solution_rank_test
