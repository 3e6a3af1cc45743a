#include "kelvin/measures/detectors/detector.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "tests/support/detectors.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::detector_test {

// Features and logits of a classifier; the logits depend on the features alone, which are not
// negative, as after a ReLU.
Record classified(int64_t samples, uint64_t seed) {
  const auto features = noise({samples, 6}, seed).abs();
  const auto weight = noise({4, 6}, 100);
  auto record = record_of(features.matmul(weight.t()).to(torch::kFloat32),
                          torch::arange(samples) % 4, Split::train);
  record.features = features.to(torch::kFloat32);
  record.weight = weight.to(torch::kFloat32);
  record.bias = torch::zeros({4});
  return record;
}

Record part_of(const Record& whole, int64_t begin, int64_t end) {
  auto part = whole;
  for (auto* tensor : {&part.logits, &part.labels, &part.features}) {
    *tensor = tensor->slice(0, begin, end);
  }
  return part;
}

class EveryDetector : public testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<Detector> fitted() {
    auto detector = make_detector(GetParam(), {}, 2);
    detector->fit(classified(40, 0));
    return detector;
  }
};

TEST_P(EveryDetector, HasASummaryAndAReference) {
  EXPECT_FALSE(detectors().find(GetParam()).summary.empty());
  EXPECT_FALSE(detectors().find(GetParam()).reference.empty());
}

TEST_P(EveryDetector, GoesByTheNameItIsFoundBy) {
  EXPECT_EQ(make_detector(GetParam())->name(), GetParam());
}

TEST_P(EveryDetector, GivesOneFiniteDoublePerSample) {
  const auto scores = fitted()->score(classified(15, 1));
  EXPECT_EQ(scores.sizes(), torch::IntArrayRef({15}));
  EXPECT_EQ(scores.scalar_type(), torch::kFloat64);
  EXPECT_TRUE(torch::isfinite(scores).all().item<bool>());
  EXPECT_GT(scores.std().item<double>(), 0);
}

TEST_P(EveryDetector, ScoresASampleWhateverElseIsInTheBatch) {
  const auto detector = fitted();
  const auto whole = classified(15, 2);
  const auto in_parts =
      torch::cat({detector->score(part_of(whole, 0, 1)), detector->score(part_of(whole, 1, 15))});
  const auto at_once = detector->score(whole);
  expect_close(in_parts, at_once, 1e-12 * std::max(1., at_once.abs().max().item<double>()));
}

TEST_P(EveryDetector, ScoresNoSamples) {
  EXPECT_EQ(fitted()->score(part_of(classified(15, 2), 0, 0)).sizes(), torch::IntArrayRef({0}));
}

TEST_P(EveryDetector, SaysWhatItsScoreIs) {
  const auto definition = fitted()->definition();
  ASSERT_TRUE(definition.is_object());
  EXPECT_TRUE(definition.contains("score"));
}

INSTANTIATE_TEST_SUITE_P(Detectors, EveryDetector, testing::ValuesIn(detectors().names()),
                         [](const auto& info) { return info.param; });

TEST(Detectors, RejectsAnUnknownNameAndSuggestsTheNearest) {
  EXPECT_EQ(error_of([] {
              detectors().find("nevo");
            }).find("no detector named 'nevo'; did you mean 'neco'?"),
            0U);
}

// The classifier's logits are the features.
Record identity_record(const torch::Tensor& features) {
  return features_record(features, torch::eye(features.size(1), torch::kFloat64),
                         torch::zeros({features.size(1)}, torch::kFloat64));
}

// Those that score logits, the network's own or those of changed features.
struct LogitDetector {
  std::string name;
  bool of_probabilities = false;  // and so blind to what softmax(M / T) does not show
};

class EveryLogitDetector : public testing::TestWithParam<LogitDetector> {
 protected:
  static const std::string& name() { return GetParam().name; }

  static Record in_float64(const Record& record) {
    return features_record(record.features.to(torch::kFloat64), record.weight.to(torch::kFloat64),
                           record.bias.to(torch::kFloat64));
  }

  static torch::Tensor scores(const Record& train, const Record& test, double temperature) {
    return fitted_scores(*make_detector(name(), {}, temperature), train, test);
  }
};

TEST_P(EveryLogitDetector, ScoresANetworkAtItsTrainingTemperature) {
  const auto train = in_float64(classified(40, 0));
  const auto test = in_float64(classified(15, 1));
  const auto hot = [](Record record) {
    for (auto* tensor : {&record.logits, &record.weight, &record.bias}) *tensor = 100 * *tensor;
    return record;
  };
  // The same probabilities; an energy is that of logits, and so it is 100 times as large.
  const double factor = GetParam().of_probabilities ? 1 : 100;
  expect_ratio(scores(hot(train), hot(test), 100), factor * scores(train, test, 1), 1e-10);
}

TEST_P(EveryLogitDetector, IgnoresOrFollowsAShiftOfAllLogits) {
  const auto shifted = [](Record record) {
    for (auto* tensor : {&record.logits, &record.bias}) *tensor = 9 + *tensor;
    return record;
  };
  const auto train = in_float64(classified(40, 0));
  const auto test = in_float64(classified(15, 1));
  const double shift = GetParam().of_probabilities ? 0 : 9;
  expect_close(scores(train, shifted(test), 2), scores(train, test, 2) + shift, 1e-11);
}

TEST_P(EveryLogitDetector, ScoresAConfidentSampleAboveAnIndifferentOne) {
  const auto train = identity_record(8 * torch::eye(4, torch::kFloat64));
  const auto test =
      identity_record(torch::tensor({{8., 0., 0., 0.}, {0.1, 0.1, 0.1, 0.1}}, torch::kFloat64));
  const auto both = scores(train, test, 1);
  EXPECT_GT(both[0].item<double>(), both[1].item<double>());
}

TEST_P(EveryLogitDetector, RejectsASampleThatIsNotANumber) {
  const auto train = classified(40, 0);
  auto test = classified(3, 1);
  test.features[1][2] = NAN;
  test.logits[1][0] = NAN;
  EXPECT_EQ(error_of([&] { scores(train, test, 1); }), name() + ": the score of a sample is NaN");
}

TEST_P(EveryLogitDetector, RecordsTheTemperature) {
  const auto definition = make_detector(name(), {}, 100)->definition();
  if (name() == "max_logit") {
    EXPECT_FALSE(definition.contains("temperature"));
  } else {
    EXPECT_EQ(definition["temperature"], 100);
  }
}

INSTANTIATE_TEST_SUITE_P(Detectors, EveryLogitDetector,
                         testing::Values(LogitDetector{"msp", true}, LogitDetector{"entropy", true},
                                         LogitDetector{"gen", true}, LogitDetector{"odin", true},
                                         LogitDetector{"kl_matching", true},
                                         LogitDetector{"max_logit"}, LogitDetector{"energy"},
                                         LogitDetector{"react"}, LogitDetector{"ash_p"},
                                         LogitDetector{"ash_b"}, LogitDetector{"ash_s"},
                                         LogitDetector{"scale"}),
                         [](const auto& info) { return info.param.name; });

// For those whose score grows with the margin: not ReAct, which clips, nor KL matching, which likes
// best what training was like.
class ConfidentSamples : public testing::TestWithParam<std::string> {};

TEST_P(ConfidentSamples, AreRankedByTheirMargin) {
  auto features = torch::zeros({6, 4}, torch::kFloat64);
  features.select(1, 2).copy_(doubles({30, 50, 100, 300, 600, 700}));
  const auto record = identity_record(features);
  const auto scores = fitted_scores(*make_detector(GetParam()), record, record);
  EXPECT_TRUE(torch::isfinite(scores).all().item<bool>()) << scores;
  EXPECT_TRUE((scores.diff() > 0).all().item<bool>()) << scores;
}

INSTANTIATE_TEST_SUITE_P(Detectors, ConfidentSamples,
                         testing::Values("msp", "max_logit", "energy", "entropy", "gen", "odin",
                                         "ash_p", "ash_b", "ash_s", "scale"),
                         [](const auto& info) { return info.param; });

// Keeps what it is given, and gives back what it is told to.
class Spy : public Detector {
 public:
  explicit Spy(DetectorNeeds needs = {}, torch::Tensor scores = torch::zeros({1}))
      : Detector("spy", needs), scores_(std::move(scores)) {}

  Definition definition() const override { return Definition::object(); }
  const Record& learnt() const { return learnt_; }
  const Record& rated() const { return rated_; }

 private:
  void do_fit(const Record& id_train) override { learnt_ = id_train; }
  torch::Tensor do_score(const Record& record) const override {
    rated_ = record;
    return scores_;
  }

  torch::Tensor scores_;
  Record learnt_;
  mutable Record rated_;
};

std::string fit_error(const Record& record, DetectorNeeds needs = {}) {
  return error_of([&] { Spy(needs).fit(record); });
}

std::string score_error(const Record& record, DetectorNeeds needs = {}) {
  Spy spy(needs);
  spy.fit(classified(40, 0));
  return error_of([&] { spy.score(record); });
}

TEST(Detector, HandsOnRecordsInFloat64) {
  auto record = classified(5, 0);
  record.labels = record.labels.to(torch::kInt32);
  record.layers.resize(2);
  Spy spy({.weight = true});
  spy.fit(record);
  spy.score(record);
  for (const auto* seen : {&spy.learnt(), &spy.rated()}) {
    for (const auto* tensor : {&seen->logits, &seen->features, &seen->weight, &seen->bias}) {
      EXPECT_EQ(tensor->scalar_type(), torch::kFloat64);
    }
    expect_close(seen->features, record.features, 0);
    expect_close(seen->logits, record.logits, 0);
    EXPECT_EQ(seen->labels.scalar_type(), torch::kInt64);
    EXPECT_TRUE(seen->layers.empty());
  }
}

TEST(Detector, TakesAClassifierWithoutBiasAsOneWithZeros) {
  auto record = classified(5, 0);
  record.bias = torch::Tensor();
  Spy spy({.weight = true});
  spy.fit(record);
  expect_close(spy.learnt().bias, torch::zeros({4}), 0);
}

TEST(Detector, NeedsNoLabels) {
  auto record = classified(5, 0);
  record.labels = torch::Tensor();
  Spy spy;
  spy.fit(record);
  EXPECT_FALSE(spy.learnt().labels.defined());
}

TEST(Detector, ThatNeedsTheWeightNeedsFeaturesToo) {
  EXPECT_TRUE(Spy({.weight = true}).needs().features);
  EXPECT_FALSE(Spy({.features = true}).needs().weight);
  EXPECT_FALSE(Spy().needs().features);
}

TEST(Detector, TakesOutputsForLogitsUnlessItLooksAtFeaturesAlone) {
  EXPECT_TRUE(Spy().needs().classifier);
  EXPECT_TRUE(Spy({.weight = true}).needs().classifier);
  EXPECT_FALSE(Spy({.features = true}).needs().classifier);
  EXPECT_TRUE(Spy({.features = true, .classifier = true}).needs().classifier);
  std::vector<std::string> without;
  for (const auto& name : detectors().names()) {
    Settings settings("detector." + name, {});
    const auto& entry = detectors().find(name);
    if (!entry.make({}, settings)->needs().classifier) without.push_back(name);
  }
  EXPECT_EQ(without, (std::vector<std::string>{"cosine", "knn", "mahalanobis", "neco",
                                               "relative_mahalanobis"}));
  // For vision transformers it multiplies with the largest logit.
  Settings settings("detector.neco", {});
  EXPECT_TRUE(detectors().find("neco").make({.model = "vit_tiny"}, settings)->needs().classifier);
}

TEST(Detector, SaysWhatARecordIsMissing) {
  auto record = classified(5, 0);
  EXPECT_EQ(missing_for(Spy({.weight = true}), record), "");
  record.weight = torch::Tensor();
  EXPECT_EQ(missing_for(Spy({.weight = true}), record), "the classifier's weight");
  EXPECT_EQ(missing_for(Spy({.features = true}), record), "");
  EXPECT_EQ(fit_error(record, {.weight = true}),
            "spy: needs the classifier's weight, which the records do not have");
  record.features = torch::Tensor();
  EXPECT_EQ(score_error(record, {.features = true}),
            "spy: needs features, which the records do not have");
  EXPECT_EQ(missing_for(Spy(), record), "");
  EXPECT_EQ(missing_for(Spy(), Record{}), "logits");
}

TEST(Detector, RejectsScoringBeforeFitting) {
  EXPECT_EQ(error_of([] { Spy().score(classified(5, 0)); }),
            "spy: must be fitted before it scores");
}

TEST(Detector, RejectsTrainingWithoutSamples) {
  EXPECT_EQ(fit_error(part_of(classified(5, 0), 0, 0)), "spy: needs training samples, got none");
}

TEST(Detector, RejectsTrainingSamplesThatAreNotFinite) {
  auto record = classified(5, 0);
  record.logits[1][1] = NAN;
  EXPECT_EQ(fit_error(record),
            "spy: logits of training samples must be finite, have a NaN or an infinity");
  record = classified(5, 0);
  record.features[1][1] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(fit_error(record, {.features = true}),
            "spy: features of training samples must be finite, have a NaN or an infinity");
}

TEST(Detector, RejectsTensorsThatDoNotFitTogether) {
  auto record = classified(5, 0);
  record.logits = record.logits[0];
  EXPECT_EQ(fit_error(record), "spy: logits must be [samples, classes], got [4]");
  record = classified(5, 0);
  record.labels = torch::zeros({6}, torch::kInt64);
  EXPECT_EQ(fit_error(record), "spy: labels must have 5 rows and 1 dimensions, got [6]");
  record = classified(5, 0);
  record.features = torch::zeros({5, 6, 1});
  EXPECT_EQ(score_error(record, {.features = true}),
            "spy: features must have 5 rows and 2 dimensions, got [5, 6, 1]");
  record = classified(5, 0);
  record.weight = torch::zeros({6, 4});
  EXPECT_EQ(score_error(record, {.weight = true}), "spy: weight must be [4, 6], got [6, 4]");
}

TEST(Detector, RejectsLabelsOfNoClassInTrainingOnly) {
  for (const int64_t label : {-1, 4}) {
    auto record = classified(5, 0);
    record.labels[2] = label;
    EXPECT_EQ(fit_error(record), "spy: labels of training samples must be in [0, 4)");
    Spy spy;
    spy.fit(classified(5, 0));
    expect_close(spy.score(record), torch::zeros({1}), 0);  // OOD samples have other classes
  }
}

TEST(Detector, RejectsAScoreThatIsNotANumberAndSaysOfWhat) {
  Spy spy({}, doubles({0, NAN}));
  auto record = classified(2, 0);
  spy.fit(record);
  EXPECT_EQ(error_of([&] { spy.score(record); }), "spy: the score of a sample is NaN");
  record.ood = "svhn";
  EXPECT_EQ(error_of([&] { spy.score(record); }), "spy: the score of a sample of 'svhn' is NaN");
}

TEST(Detector, GivesInfiniteScores) {
  const auto infinities = doubles({-HUGE_VAL, HUGE_VAL});
  Spy spy({}, infinities);
  spy.fit(classified(2, 0));
  EXPECT_TRUE(spy.score(classified(2, 0)).equal(infinities));
}

}  // namespace kelvin::detector_test
