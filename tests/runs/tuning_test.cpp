#include "kelvin/runs/tuning.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace kelvin::tuning_test {

Values settings_with(const std::string& key, const Value& value) {
  Values values = {{"train.lr", {0.5, 0.1, 2}}, {"samples", 100}, {"seed", 100}};
  if (value.is_null()) {
    values.erase(key);
  } else {
    values[key] = value;
  }
  return values;
}

std::string refusal_with(const std::string& key, const Value& value) {
  return error_of([&] { tune_settings(settings_with(key, value), "o"); });
}

TEST(TuneSettings, HoldTheGridInAscendingOrder) {
  const auto tune = tune_settings(settings_with("seed", 101), "o");
  EXPECT_EQ(tune.key, "train.lr");
  EXPECT_EQ(tune.grid, (std::vector<Value>{0.1, 0.5, 2}));
  EXPECT_EQ(tune.samples, 100);
  EXPECT_EQ(tune.seed, 101);
}

TEST(TuneSettings, RejectWhatIsNothingToChooseFrom) {
  const std::string where = "o: tune.train.lr: must be a list of at least two numbers to choose ";
  EXPECT_EQ(refusal_with("train.lr", Value::array()), where + "from, got []");
  EXPECT_EQ(refusal_with("train.lr", Value::array({0.1})), where + "from, got [0.1]");
  EXPECT_EQ(refusal_with("train.lr", 0.1), where + "from, got 0.1");
  EXPECT_EQ(refusal_with("train.lr", {"a", "b"}), where + "from, got [\"a\",\"b\"]");
  EXPECT_EQ(refusal_with("train.lr", {0.1, 0.1}),
            "o: tune.train.lr: must hold each number once, got [0.1,0.1]");
  EXPECT_EQ(refusal_with("train.lr", nullptr), "o: tune: must name one key to choose, names none");
  EXPECT_EQ(refusal_with("train.momentum", {0.1, 0.9}),
            "o: tune: must name one key to choose, names train.lr, train.momentum");
}

TEST(TuneSettings, RejectTrialsWithoutImagesOrSeed) {
  EXPECT_EQ(refusal_with("samples", nullptr),
            "o: tune.samples: must be a whole number from 1, got nothing");
  EXPECT_EQ(refusal_with("samples", 0), "o: tune.samples: must be a whole number from 1, got 0");
  EXPECT_EQ(refusal_with("seed", 1.5), "o: tune.seed: must be a whole number from 0, got 1.5");
  EXPECT_EQ(refusal_with("seed", -1), "o: tune.seed: must be a whole number from 0, got -1");
}

TEST(TrialConfig, HoldsOutImagesAndMeasuresNothingButAccuracy) {
  Config run;
  run.set("seed", 1);
  run.set("train.temperature", 30.0);
  run.set("data.ood", {"svhn"});
  run.set("measure.near", {"svhn"});
  run.set("measure.names", {"accuracy", "linear_probe"});
  run.set("measure.detectors", {"neco"});
  run.set("measure.during", {"alignment"});
  const auto trial = trial_config(run, tune_settings(settings_with("seed", 100), "o"), 0.5);
  EXPECT_EQ(trial.values(), (Values{{"seed", 100},
                                    {"train.temperature", 30.0},
                                    {"train.lr", 0.5},
                                    {"data.validation_samples", 100},
                                    {"data.test_on", "validation"},
                                    {"data.ood", Value::array()},
                                    {"measure.near", Value::array()},
                                    {"measure.names", Value::array({"accuracy"})},
                                    {"measure.steps_per_decade", 0},
                                    {"measure.detectors", Value::array()},
                                    {"measure.during", Value::array()}}));
}

Run trial_with(const Readings& readings) {
  return {.path = "trial",
          .config = {},
          .metadata = nlohmann::ordered_json::object(),
          .metrics = {},
          .readings = readings,
          .scores = {},
          .status = RunStatus::finished};
}

TEST(TrialResult, IsTheAccuracyOnImagesThatWereNotTrainedOn) {
  const auto trial = trial_with({{.name = "accuracy", .value = 0.9, .split = "train"},
                                 {.name = "nll", .value = 0.4, .split = "test"},
                                 {.name = "accuracy", .value = 0.7, .split = "test"}});
  EXPECT_EQ(trial_result(trial, 0.1).accuracy, 0.7);
  EXPECT_EQ(trial_result(trial, 0.1).failure, "");
  EXPECT_EQ(error_of([] { trial_result(trial_with({}), 0.1); }),
            "trial: must hold the accuracy on the images held out, to choose a setting by");
}

TEST(TrialResult, OfAFailureIsWhatItSaid) {
  auto trial = trial_with({});
  trial.status = RunStatus::failed;
  EXPECT_EQ(trial_result(trial, 0.1).failure, "failed");
  trial.metadata["failure"] = "the loss became nan";
  EXPECT_EQ(trial_result(trial, 0.1).failure, "the loss became nan");
  EXPECT_FALSE(trial_result(trial, 0.1).accuracy);
}

TEST(BestTrial, HasTheHighestAccuracyAndOfEqualOnesTheSmallestValue) {
  EXPECT_EQ(best_trial({{0.1, 0.5}, {0.5, 0.7}, {2, 0.6}}), 1U);
  EXPECT_EQ(best_trial({{0.1, 0.5}, {0.5, 0.7}, {2, 0.7}}), 1U);
  EXPECT_EQ(best_trial({{2, 0.7}, {0.5, 0.7}, {0.1, 0.5}}), 1U);  // in whatever order they come
}

TEST(BestTrial, LosesByFailing) {
  EXPECT_EQ(best_trial({{0.1, 0.01}, {0.5, {}, "nan"}}), 0U);
  EXPECT_EQ(best_trial({{0.1, {}, "nan"}, {0.5, 0.0}}), 1U);
  EXPECT_EQ(best_trial({{0.1, {}, "nan"}, {0.5, {}, "nan"}}), std::nullopt);
}

TEST(BestTrial, IsNotKnownBeforeAllHaveEnded) {
  EXPECT_EQ(best_trial({{0.1, 0.5}, {0.5}}), std::nullopt);
  EXPECT_EQ(best_trial({}), std::nullopt);
}

}  // namespace kelvin::tuning_test
