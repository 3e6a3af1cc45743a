#include "kelvin/experiment/evaluate/detection.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kelvin/core/check.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::detection_test {

// Its score is the first logit, plus the mean of those it was fitted on.
class FirstLogit : public Detector {
 public:
  explicit FirstLogit(std::string name = "first", DetectorNeeds needs = {})
      : Detector(std::move(name), needs) {}
  Definition definition() const override { return {{"score", "first logit"}}; }

 private:
  void do_fit(const Record& id_train) override {
    mean_ = id_train.logits.select(1, 0).mean().item<double>();
  }
  torch::Tensor do_score(const Record& record) const override {
    return record.logits.select(1, 0) + mean_;
  }
  double mean_ = 0;
};

Record record_of(const std::vector<double>& first_logits, Split split,
                 const std::string& ood = "") {
  Record record;
  record.split = split;
  record.ood = ood;
  record.classes = 2;
  record.logits =
      torch::stack({doubles(first_logits), torch::zeros_like(doubles(first_logits))}, 1);
  record.labels = torch::arange(record.logits.size(0)) % 2;
  return record;
}

const Reading* find(const Readings& readings, const std::string& name, const std::string& ood) {
  for (const auto& reading : readings) {
    if (reading.name == name && reading.ood == ood) return &reading;
  }
  return nullptr;
}

std::vector<std::string> fit(Detection& detection) {
  detection.fit([](const std::string&) {});
  return detection.notes();
}

TEST(Detection, FitsOnAllTrainingSamplesAndScoresEveryPopulation) {
  Detection detection;
  detection.add(std::make_unique<FirstLogit>(), false);
  detection.see_train(record_of({1, 2}, Split::train));
  detection.see_train(record_of({9}, Split::train));
  EXPECT_TRUE(fit(detection).empty());
  detection.see_test(record_of({1, 2}, Split::test));
  detection.see_test(record_of({0}, Split::test, "a"));
  detection.see_test(record_of({3}, Split::test));
  detection.see_test(record_of({2}, Split::test, "a"));
  detection.see_test(record_of({7}, Split::test, "b"));
  const auto [readings, scores] = detection.results({});
  ASSERT_EQ(scores.size(), 2U);
  EXPECT_EQ(scores[0].id_scores, (std::vector<double>{5, 6, 7}));
  EXPECT_EQ(scores[0].ood_scores, (std::vector<double>{4, 6}));
  EXPECT_EQ(scores[1].ood, "b");
  ASSERT_EQ(readings.size(), 10U);
  const auto* auroc = find(readings, "auroc", "a");
  ASSERT_NE(auroc, nullptr);
  EXPECT_DOUBLE_EQ(auroc->value, 4.5 / 6);
  EXPECT_EQ(auroc->detector, "first");
  ASSERT_TRUE(auroc->interval);
  EXPECT_LT(auroc->interval->low, auroc->value);
  EXPECT_EQ(auroc->definition, (Definition{{"score", "first logit"},
                                           {"positive", "in distribution"},
                                           {"train_samples", 3},
                                           {"id_samples", 3},
                                           {"ood_samples", 2},
                                           {"interval", "DeLong, 95 %"}}));
  EXPECT_EQ(find(readings, "aupr_in", "a")->definition.at("interval"),
            "percentiles of 400 resamples, 95 %");
  EXPECT_EQ(find(readings, "fpr95_ood", "a")->definition.at("positive"), "out of distribution");
  EXPECT_EQ(find(readings, "fpr95_id", "b")->value, 1);
}

TEST(Detection, AveragesOverGroups) {
  Detection detection;
  detection.add(std::make_unique<FirstLogit>(), false);
  detection.see_train(record_of({1, 2}, Split::train));
  fit(detection);
  detection.see_test(record_of({1, 2}, Split::test));
  detection.see_test(record_of({0}, Split::test, "a"));
  detection.see_test(record_of({9}, Split::test, "b"));
  const auto readings = detection.results({.near = {"a", "b"}, .far = {}}).readings;
  ASSERT_NE(find(readings, "auroc", "near"), nullptr);
  EXPECT_DOUBLE_EQ(find(readings, "auroc", "near")->value, 0.5);
}

TEST(Detection, LeavesOutOptionalDetectorsThatLackSomething) {
  Detection detection;
  detection.add(std::make_unique<FirstLogit>(), true);
  detection.add(std::make_unique<FirstLogit>("second", DetectorNeeds{.weight = true}), true);
  detection.see_train(record_of({1, 2}, Split::train));
  EXPECT_EQ(fit(detection), std::vector<std::string>{
                                "left out second: needs features, which the records do not have"});
  detection.see_test(record_of({1}, Split::test));
  detection.see_test(record_of({1}, Split::test, "a"));
  EXPECT_EQ(detection.results({}).scores.size(), 1U);
}

// Cannot be fitted, cannot score, or scores all alike.
class Failing : public Detector {
 public:
  explicit Failing(std::string name) : Detector(std::move(name)) {}
  Definition definition() const override {
    return {{"score", "0"}, {"tells_nothing", name() == "silent"}};
  }

 private:
  void do_fit(const Record& /*id_train*/) override {
    check(name() != "unfit", "unfit: too few samples");
  }
  torch::Tensor do_score(const Record& record) const override {
    const auto scores = torch::zeros({record.logits.size(0)}, torch::kFloat64);
    return name() == "nan" ? scores / 0 : scores;
  }
};

TEST(Detection, GoesOnWithoutOptionalDetectorsThatFail) {
  Detection detection;
  detection.add(std::make_unique<FirstLogit>(), true);
  for (const char* name : {"unfit", "nan", "silent"}) {
    detection.add(std::make_unique<Failing>(name), true);
  }
  detection.see_train(record_of({1, 2}, Split::train));
  fit(detection);
  detection.see_test(record_of({1}, Split::test));
  detection.see_test(record_of({1}, Split::test, "a"));
  EXPECT_EQ(detection.results({}).scores.size(), 2U);
  EXPECT_EQ(detection.notes(),
            (std::vector<std::string>{
                "left out unfit: too few samples",
                "silent cannot tell samples apart here: see its definition (-o json)",
                "left out nan: the score of a sample is NaN"}));
}

TEST(Detection, IsAnErrorWhereNoDetectorIsLeft) {
  Detection detection;
  detection.add(std::make_unique<Failing>("nan"), true);
  detection.see_train(record_of({1, 2}, Split::train));
  fit(detection);
  detection.see_test(record_of({1}, Split::test));
  detection.see_test(record_of({1}, Split::test, "a"));
  EXPECT_EQ(error_of([&] { detection.results({}); }),
            "detectors: none could be used: left out nan: the score of a sample is NaN");
}

TEST(Detection, RefusesWhatAnAskedDetectorLacks) {
  Detection detection;
  detection.add(std::make_unique<FirstLogit>("second", DetectorNeeds{.features = true}), false);
  detection.see_train(record_of({1, 2}, Split::train));
  EXPECT_EQ(error_of([&] { fit(detection); }),
            "second: needs features, which the records do not have");
}

TEST(Detection, NeedsTrainingSamples) {
  Detection detection;
  detection.add(std::make_unique<FirstLogit>(), false);
  EXPECT_EQ(error_of([&] { fit(detection); }), "detectors: need training samples, got none");
}

TEST(Detection, GivesOrthoDevOfTheFeatures) {
  Detection detection;
  detection.add(std::make_unique<FirstLogit>(), false);
  auto train = record_of({0, 0, 0}, Split::train);  // of classes 0, 1, 0
  train.features = torch::tensor({{1.0, 0.0}, {0.0, 3.0}, {3.0, 0.0}});
  detection.see_train(train);
  fit(detection);
  auto known = record_of({1}, Split::test);
  known.features = torch::tensor({{1.0, 1.0}});
  detection.see_test(known);
  for (const double x : {1.0, 5.0}) {  // their mean is (3, 4)
    auto ood = record_of({1}, Split::test, "a");
    ood.features = torch::tensor({{x, 4.0}});
    detection.see_test(ood);
  }
  detection.results({});
  const auto readings = detection.orthodev();
  const auto* orthodev = find(readings, "orthodev", "a");
  ASSERT_NE(orthodev, nullptr);
  EXPECT_NEAR(orthodev->value, (3. / 5 + 4. / 5) / 2, 1e-12);
  EXPECT_EQ(orthodev->definition.at("ood_samples"), 2);
}

TEST(Detection, CountsWhatItHolds) {
  Detection detection;
  auto example = record_of({1}, Split::train);
  example.features = torch::zeros({1, 8});
  EXPECT_EQ(detection.memory(example, 100), 0);
  detection.add(std::make_unique<FirstLogit>(), false);
  const auto hundred = detection.memory(example, 100);
  EXPECT_EQ(detection.memory(example, 200) - hundred, 100 * (8 + 2) * 32);
  example.features = torch::zeros({1, 20'000});
  EXPECT_GT(detection.memory(example, 0), int64_t{4} * 20'000 * 20'000 * 8);
}

TEST(DetectorNames, AreAllOrThoseAsked) {
  EXPECT_EQ(detector_names({"all"}), detectors().names());
  EXPECT_EQ(detector_names({"neco", "msp"}), (std::vector<std::string>{"neco", "msp"}));
  EXPECT_EQ(error_of([] {
              detector_names({"all", "msp"});
            }),
            "measure.detectors: 'all' stands alone, without other names");
  EXPECT_EQ(error_of([] {
              detector_names({"msp", "msp"});
            }),
            "measure.detectors: 'msp' is there twice");
  EXPECT_TRUE(error_of([] { detector_names({"mps"}); }).starts_with("no detector named 'mps'"));
}

TEST(Detection, OfOneSampleHasNoIntervalAndSaysSo) {
  Detection detection;
  detection.add(std::make_unique<FirstLogit>(), false);
  detection.see_train(record_of({1, 2}, Split::train));
  fit(detection);
  detection.see_test(record_of({1, 2}, Split::test));
  detection.see_test(record_of({0}, Split::test, "svhn"));
  detection.see_test(record_of({0, 3}, Split::test, "mnist"));
  const auto readings = detection.results({}).readings;
  for (const char* name : {"auroc", "aupr_in", "aupr_out", "fpr95_id", "fpr95_ood"}) {
    const auto* one = find(readings, name, "svhn");
    const auto* two = find(readings, name, "mnist");
    ASSERT_TRUE(one && two) << name;
    EXPECT_FALSE(one->interval) << name;
    EXPECT_FALSE(one->definition.contains("interval")) << name;
    EXPECT_EQ(
        one->definition.value("caveat", ""),
        "from one OOD sample: it has no interval, and another sample may change it to anything");
    EXPECT_TRUE(two->interval) << name;
    EXPECT_FALSE(two->definition.contains("caveat")) << name;
  }
}

}  // namespace kelvin::detection_test
