#include "kelvin/statistics/detection_curve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "tests/support/errors.h"
#include "tests/support/python.h"

namespace kelvin::detection_curve_test {

using Doubles = std::vector<double>;
using Map = std::function<double(double)>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

DetectionQuality quality(const Doubles& id, const Doubles& ood) {
  return DetectionCurve(id, ood).quality();
}

Doubles listed(const DetectionQuality& quality) {
  return {quality.auroc, quality.aupr_in, quality.aupr_out, quality.fpr95_id, quality.fpr95_ood};
}

// Normal scores; the coarser the grid, the more of them tie.
Doubles scores(size_t count, uint64_t seed, double mean = 0, double grid = 0) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(mean, 1);
  Doubles list(count);
  for (auto& score : list) {
    score = normal(random);
    if (grid > 0) score = std::round(score / grid) * grid;
  }
  return list;
}

Doubles mapped(Doubles list, const Map& map) {
  std::transform(list.begin(), list.end(), list.begin(), map);
  return list;
}

Doubles negated(const Doubles& list) {
  return mapped(list, [](double score) { return -score; });
}

// By scikit-learn, which takes no infinities: they are shown to it as very large numbers.
Doubles expected_quality(const Doubles& id, const Doubles& ood) {
  const auto finite = [](const Doubles& list) {
    return mapped(list, [](double score) { return std::clamp(score, -1e30, 1e30); });
  };
  const auto text = python_output(
      fmt::format("import json\n"
                  "import numpy as np\n"
                  "from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve\n"
                  "a, b = np.array({}), np.array({})\n",
                  finite(id), finite(ood)) +
          R"(
score = np.concatenate([a, b])
is_id = np.concatenate([np.ones(len(a)), np.zeros(len(b))])
fpr95 = []
for truth, sign in ((is_id, 1), (1 - is_id, -1)):
    fpr, tpr, _ = roc_curve(truth, sign * score, drop_intermediate=False)
    fpr95.append(fpr[np.argmax(tpr >= 0.95 - 1e-12)])
print(json.dumps([roc_auc_score(is_id, score), average_precision_score(is_id, score),
                  average_precision_score(1 - is_id, -score), *fpr95]))
)",
      {});
  return nlohmann::json::parse(text).get<Doubles>();
}

void expect_near(const Doubles& actual, const Doubles& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], tolerance) << i;
}

TEST(DetectionCurve, OfAHandfulOfScoresIsWhatPaperSays) {
  const auto found = quality({1, 2, 3}, {0, 2});
  EXPECT_DOUBLE_EQ(found.auroc, 4.5 / 6);  // of 6 pairs 4 are right and one ties
  EXPECT_DOUBLE_EQ(found.aupr_in, (1 + 2. / 3 + 3. / 4) / 3);
  EXPECT_DOUBLE_EQ(found.aupr_out, (1 + 2. / 4) / 2);
  EXPECT_DOUBLE_EQ(found.fpr95_id, 1. / 2);
  EXPECT_DOUBLE_EQ(found.fpr95_ood, 2. / 3);
}

TEST(DetectionCurve, MayLoseOneOfTwentyButNoneOfNineteen) {
  const Doubles ood = {-50, -60};
  const auto with_one_low = [](size_t samples) {
    Doubles list(samples, 5.0);
    list[0] = -100;
    return list;
  };
  EXPECT_EQ(quality(with_one_low(20), ood).fpr95_id, 0);
  EXPECT_EQ(quality(with_one_low(19), ood).fpr95_id, 1);
  EXPECT_EQ(quality(negated(ood), negated(with_one_low(20))).fpr95_ood, 0);
  EXPECT_EQ(quality(negated(ood), negated(with_one_low(19))).fpr95_ood, 1);
}

TEST(DetectionCurve, IsThatOfScikitLearn) {
  auto infinite_id = scores(90, 6, 1, 0.5);
  auto infinite_ood = scores(50, 7, 0, 0.5);
  for (size_t i = 0; i < 20; ++i) infinite_id[i] = kInfinity;
  for (size_t i = 0; i < 8; ++i) infinite_ood[i] = kInfinity;
  for (size_t i = 8; i < 20; ++i) infinite_ood[i] = -kInfinity;
  infinite_id[30] = -kInfinity;
  const std::pair<Doubles, Doubles> cases[] = {
      {scores(137, 0, 0.8), scores(60, 1)},               // many more ID than OOD
      {scores(30, 2, 0.8, 0.5), scores(240, 3, 0, 0.5)},  // ties, fewer ID
      {scores(200, 4, -1, 2.0), scores(200, 5, 0, 2.0)},  // heavy ties, worse than guessing
      {infinite_id, infinite_ood},                        // both infinities, tied
      {Doubles(6, 1.0), Doubles(2, 1.0)},                 // constants
      {{3, 4, 5}, {1, 2}},                                // perfect
      {{1, 2}, {3, 4}}};                                  // the worst
  for (const auto& [id, ood] : cases) {
    SCOPED_TRACE(fmt::format("{} and {}", id.size(), ood.size()));
    expect_near(listed(quality(id, ood)), expected_quality(id, ood), 1e-12);
  }
}

TEST(DetectionCurve, IgnoresEveryIncreasingMapOfTheScores) {
  const Map maps[] = {[](double score) { return std::exp(score); },
                      [](double score) { return 1e6 * score - 3; },
                      [](double score) { return score * score * score; },
                      [](double score) { return std::atan(score); },
                      [](double score) { return score > 2 ? kInfinity : score; }};
  for (uint64_t seed = 0; seed < 50; ++seed) {
    // On a grid that ends at 2.25, so that many tie and nothing new does.
    const Map cut = [](double score) { return std::min(score, 2.25); };
    const auto id = mapped(scores(20 + seed, 2 * seed, 0.5, 0.25), cut);
    const auto ood = mapped(scores(70 - seed, 2 * seed + 1, 0, 0.25), cut);
    for (const auto& map : maps) {
      EXPECT_EQ(listed(quality(mapped(id, map), mapped(ood, map))), listed(quality(id, ood)));
    }
  }
}

// What a sigmoid in float32 does to logits: nearly everything ties at 1.
TEST(DetectionCurve, IsNotWhatASaturatedSigmoidWouldGive) {
  const auto id = scores(500, 1, 30);
  const auto ood = scores(500, 2, 28);
  const Map sigmoid = [](double score) {
    return static_cast<double>(1 / (1 + std::exp(-static_cast<float>(score))));
  };
  EXPECT_GT(quality(id, ood).auroc, 0.9);
  EXPECT_NEAR(quality(mapped(id, sigmoid), mapped(ood, sigmoid)).auroc, 0.5, 0.01);
}

TEST(DetectionCurve, OfSwappedPopulationsIsOneMinusTheAuroc) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto id = scores(50, seed, 1, seed % 2 == 0 ? 0.5 : 0);
    const auto ood = scores(30, seed + 100, 0, seed % 2 == 0 ? 0.5 : 0);
    EXPECT_NEAR(quality(ood, id).auroc, 1 - quality(id, ood).auroc, 1e-15);
    EXPECT_NEAR(quality(negated(id), negated(ood)).auroc, 1 - quality(id, ood).auroc, 1e-15);
  }
}

TEST(DetectionCurve, OfSwappedAndNegatedPopulationsSwapsTheConventions) {
  const auto id = scores(50, 10, 1);
  const auto ood = scores(30, 11);
  const auto found = quality(id, ood);
  const auto swapped = quality(negated(ood), negated(id));
  EXPECT_NE(found.fpr95_id, found.fpr95_ood);
  EXPECT_DOUBLE_EQ(swapped.auroc, found.auroc);
  EXPECT_DOUBLE_EQ(swapped.aupr_in, found.aupr_out);
  EXPECT_DOUBLE_EQ(swapped.aupr_out, found.aupr_in);
  EXPECT_DOUBLE_EQ(swapped.fpr95_id, found.fpr95_ood);
  EXPECT_DOUBLE_EQ(swapped.fpr95_ood, found.fpr95_id);
}

TEST(DetectionCurve, IgnoresTheOrderOfTheScores) {
  const auto id = scores(50, 8, 1);
  auto reversed = id;
  std::reverse(reversed.begin(), reversed.end());
  EXPECT_EQ(listed(quality(reversed, scores(30, 9))), listed(quality(id, scores(30, 9))));
}

TEST(DetectionCurve, OfIdenticalScoresIsThatOfGuessing) {
  EXPECT_EQ(listed(quality(Doubles(6, 1.0), Doubles(2, 1.0))), (Doubles{0.5, 0.75, 0.25, 1, 1}));
}

TEST(DetectionCurve, TakesASingleScoreOnEitherSide) {
  EXPECT_EQ(listed(quality({1}, {0})), (Doubles{1, 1, 1, 0, 0}));
}

TEST(DetectionCurve, HasAnAreaThatIsTheAuroc) {
  const auto id = scores(70, 12, 0.7, 0.5);
  const auto ood = scores(40, 13, 0, 0.5);
  const auto points = DetectionCurve(id, ood).roc();
  EXPECT_EQ(points.front().ood_accepted, 0);
  EXPECT_EQ(points.front().id_accepted, 0);
  EXPECT_EQ(points.back().ood_accepted, 1);
  EXPECT_EQ(points.back().id_accepted, 1);
  double area = 0;
  for (size_t i = 1; i < points.size(); ++i) {
    area += (points[i].ood_accepted - points[i - 1].ood_accepted) *
            (points[i].id_accepted + points[i - 1].id_accepted) / 2;
  }
  EXPECT_NEAR(area, quality(id, ood).auroc, 1e-12);
}

TEST(DetectionCurve, RejectsWhatIsNotAListOfNumbers) {
  const Doubles good = {1, 2};
  EXPECT_EQ(error_of([&] { quality({}, good); }), "detection: ID scores must not be empty");
  EXPECT_EQ(error_of([&] { quality(good, {}); }), "detection: OOD scores must not be empty");
  EXPECT_EQ(error_of([&] {
              quality(good, {0, std::nan("")});
            }),
            "detection: OOD scores must be numbers, got a NaN");
}

}  // namespace kelvin::detection_curve_test
