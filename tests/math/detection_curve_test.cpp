#include "kelvin/math/detection_curve.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <limits>
#include <string>

#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

torch::Tensor listed(const DetectionQuality& quality) {
  return doubles(
      {quality.auroc, quality.aupr_in, quality.aupr_out, quality.fpr95_id, quality.fpr95_ood});
}

TEST(DetectionQuality, OfAHandfulOfScoresIsWhatPaperSays) {
  const auto quality = detection_quality(doubles({1, 2, 3}), doubles({0, 2}));
  EXPECT_DOUBLE_EQ(quality.auroc, 4.5 / 6);  // of 6 pairs 4 are right and one ties
  EXPECT_DOUBLE_EQ(quality.aupr_in, (1 + 2. / 3 + 3. / 4) / 3);
  EXPECT_DOUBLE_EQ(quality.aupr_out, (1 + 2. / 4) / 2);
  EXPECT_DOUBLE_EQ(quality.fpr95_id, 1. / 2);
  EXPECT_DOUBLE_EQ(quality.fpr95_ood, 2. / 3);
}

TEST(DetectionQuality, MayLoseOneOfTwentyButNoneOfNineteen) {
  const auto foreign = doubles({-50, -60});
  const auto with_one_low = [](int64_t samples) {
    auto scores = torch::full({samples}, 5.0);
    scores[0] = -100;
    return scores;
  };
  EXPECT_EQ(detection_quality(with_one_low(20), foreign).fpr95_id, 0);
  EXPECT_EQ(detection_quality(with_one_low(19), foreign).fpr95_id, 1);
  EXPECT_EQ(detection_quality(-foreign, -with_one_low(20)).fpr95_ood, 0);
  EXPECT_EQ(detection_quality(-foreign, -with_one_low(19)).fpr95_ood, 1);
}

TEST(DetectionQuality, IsThatOfScikitLearn) {
  // Rounded to one decimal, most scores tie.
  const NamedTensors scores = {{"smooth_id", noise({137}, 0) + 0.8},
                               {"smooth_ood", noise({60}, 1)},
                               {"tied_id", ((noise({100}, 2) + 0.8) * 2).round() / 2},
                               {"tied_ood", (noise({240}, 3) * 2).round() / 2},
                               {"worse_id", noise({40}, 4) - 1},
                               {"worse_ood", noise({40}, 5)}};
  const auto expected = oracle(R"(
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve
for case in ("smooth", "tied", "worse"):
    a, b = x[case + "_id"], x[case + "_ood"]
    score = np.concatenate([a, b])
    is_id = np.concatenate([np.ones(len(a)), np.zeros(len(b))])
    threshold = max(t for t in a if np.mean(a >= t) >= 0.95)
    fpr, tpr, _ = roc_curve(1 - is_id, -score, drop_intermediate=False)
    out[case] = np.array([roc_auc_score(is_id, score), average_precision_score(is_id, score),
                          average_precision_score(1 - is_id, -score), np.mean(b >= threshold),
                          fpr[np.argmax(tpr >= 0.95)]])
)",
                               scores);
  for (const std::string name : {"smooth", "tied", "worse"}) {
    SCOPED_TRACE(name);
    expect_close(listed(detection_quality(scores.at(name + "_id"), scores.at(name + "_ood"))),
                 expected.at(name), 1e-12);
  }
}

TEST(DetectionQuality, IgnoresMonotoneMapsOfTheScores) {
  const auto id = ((noise({50}, 6) + 0.5) * 4).round() / 4;
  const auto ood = (noise({70}, 7) * 4).round() / 4;
  const auto quality = listed(detection_quality(id, ood));
  const std::function<torch::Tensor(const torch::Tensor&)> maps[] = {
      [](const torch::Tensor& scores) { return scores.exp(); },
      [](const torch::Tensor& scores) { return 1e6 * scores - 3; },
      [](const torch::Tensor& scores) { return scores.pow(3); }};
  for (const auto& map : maps)
    expect_close(listed(detection_quality(map(id), map(ood))), quality, 0);
}

TEST(DetectionQuality, IgnoresTheOrderAndTheTypeOfTheScores) {
  const auto id = noise({50}, 8).to(torch::kFloat32);
  const auto ood = noise({30}, 9).to(torch::kFloat32);
  expect_close(listed(detection_quality(id.flip(0).to(torch::kFloat64), ood.roll(7))),
               listed(detection_quality(id, ood)), 0);
}

TEST(DetectionQuality, OfSwappedAndNegatedPopulationsSwapsTheConventions) {
  const auto id = noise({50}, 10) + 1;
  const auto ood = noise({30}, 11);
  const auto quality = detection_quality(id, ood);
  const auto swapped = detection_quality(-ood, -id);
  EXPECT_NE(quality.fpr95_id, quality.fpr95_ood);
  EXPECT_DOUBLE_EQ(swapped.auroc, quality.auroc);
  EXPECT_DOUBLE_EQ(swapped.aupr_in, quality.aupr_out);
  EXPECT_DOUBLE_EQ(swapped.aupr_out, quality.aupr_in);
  EXPECT_DOUBLE_EQ(swapped.fpr95_id, quality.fpr95_ood);
  EXPECT_DOUBLE_EQ(swapped.fpr95_ood, quality.fpr95_id);
}

TEST(DetectionQuality, OfPerfectSeparationIsPerfect) {
  expect_close(listed(detection_quality(doubles({3, 4, 5}), doubles({1, 2}))),
               doubles({1, 1, 1, 0, 0}), 0);
}

TEST(DetectionQuality, OfReversedScoresIsTheWorst) {
  const auto quality = detection_quality(doubles({1, 2}), doubles({3, 4}));
  EXPECT_EQ(quality.auroc, 0);
  EXPECT_EQ(quality.fpr95_id, 1);
  EXPECT_EQ(quality.fpr95_ood, 1);
}

TEST(DetectionQuality, OfIdenticalScoresIsThatOfGuessing) {
  expect_close(listed(detection_quality(torch::ones({6}), torch::ones({2}))),
               doubles({0.5, 0.75, 0.25, 1, 1}), 0);
}

TEST(DetectionQuality, TakesASingleScoreOnEitherSide) {
  expect_close(listed(detection_quality(doubles({1}), doubles({0}))), doubles({1, 1, 1, 0, 0}), 0);
}

TEST(DetectionQuality, RejectsWhatIsNotAListOfFiniteScores) {
  const auto good = doubles({1, 2});
  EXPECT_EQ(error_of([&] { detection_quality(torch::zeros({0}), good); }),
            "detection_quality: id_scores must be [samples], got [0]");
  EXPECT_EQ(error_of([&] {
              detection_quality(good, torch::zeros({2, 1}));
            }),
            "detection_quality: ood_scores must be [samples], got [2, 1]");
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(error_of([&] {
                detection_quality(good, doubles({0, bad}));
              }),
              "detection_quality: ood_scores must be finite, got a NaN or an infinity");
  }
}

}  // namespace
}  // namespace kelvin
