#include "kelvin/experiment/evaluate/evaluation.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/measured.h"

namespace kelvin::evaluation_test {

using Words = std::vector<std::string>;

// Writes down what it is asked for; has one OOD dataset.
class Diary : public RecordSource {
 public:
  explicit Diary(bool has_train = true) : has_train_(has_train) {}

  size_t ood_datasets() const override { return 1; }
  bool has_train(const std::optional<size_t>& /*ood*/) const override { return has_train_; }
  void show(const Pass& pass, const Consume& consume) override {
    auto word = std::string(pass.ood ? "ood " : "") + name_of(pass.split);
    if (pass.sample > 0) word = "sample of " + std::to_string(pass.sample);
    if (pass.repetition > 0) word += " again";
    if (pass.with_layers) word += " with layers";
    words.push_back(word);
    consume({.split = pass.split,
             .ood = pass.ood ? "other" : "",
             .classes = 2,
             .logits = torch::tensor({{2.0, 0.0}, {0.0, pass.ood ? 1.0 : 3.0}}),
             .labels = torch::tensor({0, 1}),
             .features = torch::tensor({{2.0, 0.0}, {0.0, 3.0}})});
  }
  Record gradients() override {
    words.emplace_back("gradients");
    return {};
  }

  Words words = {};

 private:
  bool has_train_;
};

// Wants each split twice.
class TwiceShown : public Measure {
 public:
  explicit TwiceShown(Needs needs) : needs_(needs) {}

  Needs needs() const override { return needs_; }
  void update(const Record& record) override {
    samples_ += static_cast<double>(record.logits.size(0));
  }
  bool wants_another_pass() override { return !std::exchange(is_done_, true); }
  bool wants_train_again() override { return (++train_passes_ % 2) == 1; }
  void merge(const Measure&) override {}
  NamedTensors state() const override { return {}; }
  Readings compute() const override { return {{.name = "samples", .value = samples_}}; }

 private:
  Needs needs_;
  double samples_ = 0;
  bool is_done_ = false;
  int64_t train_passes_ = 0;
};

// What the source is asked for, for a measure with these needs.
Words asked_for(const Needs& needs, Diary diary = Diary()) {
  MeasureSet measures;
  measures.add("twice", std::make_unique<TwiceShown>(needs));
  Detection none;
  show_all(diary, measures, none, {});
  return diary.words;
}

TEST(Evaluation, AsksForNothingThatNobodyNeeds) {
  EXPECT_EQ(asked_for({}), (Words{"test", "test"}));
  EXPECT_EQ(asked_for({.layers = true}), (Words{"test with layers", "test with layers"}));
}

TEST(Evaluation, ShowsSampleTrainingTestGradientsAndOodDataInThisOrder) {
  EXPECT_EQ(asked_for({.train_split = true, .ood = true, .gradients = true, .sample = 5}),
            (Words{"sample of 5", "train", "train again", "test", "gradients", "ood train",
                   "ood train again", "ood test", "test"}));
}

TEST(Evaluation, GoesWithoutATrainingSplitWhereThereIsNone) {
  EXPECT_EQ(asked_for({.train_split = true, .ood = true}, Diary(/*has_train=*/false)),
            (Words{"test", "ood test", "test"}));
}

Measured detected(Diary& diary, const RunContext& context = {}) {
  MeasureSet none;
  Detection detection;
  Settings settings("detector.msp", {});
  detection.add(detectors().find("msp").make({}, settings), /*is_optional=*/false);
  show_all(diary, none, detection, context);
  return results_of(none, detection, {}, context);
}

TEST(Evaluation, FitsDetectorsBeforeTheyScoreAndAddsOrthodev) {
  Diary diary;
  const auto measured = detected(diary);
  EXPECT_EQ(diary.words, (Words{"train", "test", "ood test"}));
  ASSERT_EQ(measured.scores.size(), 1U);
  EXPECT_EQ(measured.scores[0].ood, "other");
  EXPECT_EQ(readings_of(measured.readings, "auroc").size(), 1U);
  // Class means (2, 0) and (0, 3), OOD mean (1, 1.5).
  const auto orthodev = readings_of(measured.readings, "orthodev");
  ASSERT_EQ(orthodev.size(), 1U);
  EXPECT_NEAR(orthodev[0].value, (1 + 1.5) / 2 / std::hypot(1, 1.5), 1e-12);
  EXPECT_EQ(orthodev[0].definition.at("ood_samples"), 2);
}

TEST(Evaluation, StopsWhenAsked) {
  RunContext context;
  context.should_stop = [] { return true; };
  Diary diary;
  EXPECT_EQ(error_of([&] { detected(diary, context); }),
            "stopped while measuring; no readings were written");
}

}  // namespace kelvin::evaluation_test
