#include "kelvin/report/tables/verdict.h"

#include <gtest/gtest.h>

#include <tuple>

#include "tests/report/report_runs.h"

namespace kelvin::verdict_test {

TEST(EqualAccuracy, IsTheLargestThatEveryRunReaches) {
  auto fast = bare_run(1, 0);
  auto slow = bare_run(100, 0);
  add_metrics(fast, {{0.5, 10}, {0.9, 20}});
  add_metrics(slow, {{0.3, 4}, {0.7, 5}, {0.6, 6}});
  EXPECT_EQ(common_accuracy({fast, slow}), 0.7);
  EXPECT_EQ(rank_at_accuracy(fast, 0.7)->value, 20);
  EXPECT_EQ(rank_at_accuracy(slow, 0.7)->value, 5);
}

TEST(EqualAccuracy, IgnoresTheInitialisation) {
  auto run = bare_run(1, 0);
  add_metrics(run, {{0.2, 3}});
  EXPECT_EQ(common_accuracy({run}), 0.2);
  EXPECT_EQ(rank_at_accuracy(run, 0.2)->value, 3);
}

TEST(EqualAccuracy, IsNoneWithoutMetrics) {
  EXPECT_FALSE(common_accuracy({bare_run(1, 0)}));
  EXPECT_FALSE(rank_at_accuracy(bare_run(1, 0), 0.1));
}

TEST(EqualAccuracy, HasNoRankWhereNoneWasMeasured) {
  auto run = bare_run(1, 0);
  run.metrics.push_back({{"epoch", 1}, {"train_accuracy", 0.5}, {"solution_rank", nullptr}});
  EXPECT_FALSE(rank_at_accuracy(run, 0.5));
  EXPECT_FALSE(rank_at_accuracy(run, 0.6));
}

const Claim kLowerRank = {.reading = "solution_rank",
                          .direction = "lower",
                          .at = {{"train.temperature", 100}},
                          .against = {{"train.temperature", 1}}};

// One pair of runs per element: rank at high and at low temperature.
Runs pairs(const std::vector<std::pair<double, double>>& ranks) {
  Runs runs;
  for (size_t seed = 0; seed < ranks.size(); ++seed) {
    runs.push_back(run_with_rank(100, static_cast<int64_t>(seed), ranks[seed].first));
    runs.push_back(run_with_rank(1, static_cast<int64_t>(seed), ranks[seed].second));
  }
  return runs;
}

Verdict verdict_on(const Runs& runs, const Claim& claim = kLowerRank) {
  const auto all = verdicts(runs, {claim});
  EXPECT_EQ(all.size(), 1);
  return all.at(0);
}

// Of each run a default reading, and others that say the opposite.
Runs runs_with_other_readings() {
  auto runs = pairs({{10, 49}, {11, 49}, {12, 49}});
  for (auto& run : runs) {
    const bool is_hot = run.config.at("train.temperature") == 100;
    run.readings.push_back(rank_reading(is_hot ? 60 : 50, 1e-2));
    run.readings.push_back(rank_reading(is_hot ? 70 : 50, 1e-3, /*shift_free=*/false));
    for (const char* layer : {"fc1", "fc2"}) {
      run.readings.push_back({.name = "gradient_rank",
                              .value = is_hot == (layer == std::string("fc1")) ? 3.0 : 8.0,
                              .layer = layer,
                              .split = "test"});
    }
    for (const char* detector : {"msp", "neco"}) {
      run.readings.push_back({.name = "auroc",
                              .value = is_hot == (detector == std::string("neco")) ? 0.9 : 0.1,
                              .split = "test",
                              .detector = detector,
                              .ood = "svhn"});
    }
  }
  return runs;
}

Claim claim_about(const std::string& reading, const Values& of) {
  auto claim = kLowerRank;
  claim.reading = reading;
  claim.of = of;
  return claim;
}

TEST(Verdict, IsOnTheReadingThatTheClaimNames) {
  const auto runs = runs_with_other_readings();
  EXPECT_EQ(verdict_on(runs, claim_about("solution_rank", {})).outcome, Outcome::holds);
  EXPECT_EQ(verdict_on(runs, claim_about("solution_rank", {{"gamma", 1e-3}})).outcome,
            Outcome::holds);
  const auto wide = verdict_on(runs, claim_about("solution_rank", {{"gamma", 1e-2}}));
  EXPECT_EQ(wide.outcome, Outcome::contradicted);
  EXPECT_EQ(wide.statement,
            "solution rank (SR) (gamma 0.01) is lower at temperature 100 than at temperature 1");
  const auto raw = verdict_on(runs, claim_about("solution_rank", {{"shift_free", false}}));
  EXPECT_EQ(raw.difference.mean, 20);
  EXPECT_EQ(verdict_on(runs, claim_about("gradient_rank", {{"layer", "fc1"}})).outcome,
            Outcome::holds);
  EXPECT_EQ(verdict_on(runs, claim_about("gradient_rank", {{"layer", "fc2"}})).outcome,
            Outcome::contradicted);
  EXPECT_EQ(verdicts(runs, {claim_about("auroc", {})}).size(), 2U);
  EXPECT_EQ(verdict_on(runs, claim_about("auroc", {{"detector", "msp"}})).outcome, Outcome::holds);
}

TEST(Verdict, IsNotMeasuredWhereNoReadingIsAsNamed) {
  const auto runs = runs_with_other_readings();
  for (const auto& [reading, key, value] : {std::tuple{"solution_rank", "gamma", Value(0.5)},
                                            {"solution_rank", "bias", Value(false)},
                                            {"gradient_rank", "layer", Value("fc3")},
                                            {"auroc", "detector", Value("knn")},
                                            {"auroc", "ood", Value("cifar10")},
                                            {"solution_rank", "split", Value("train")}}) {
    EXPECT_EQ(verdict_on(runs, claim_about(reading, {{key, value}})).outcome, Outcome::not_measured)
        << key;
  }
}

TEST(Verdict, HoldsIfTheIntervalLiesOnTheClaimedSide) {
  const auto verdict = verdict_on(pairs({{10, 49}, {11, 49}, {12, 49}}));
  EXPECT_EQ(verdict.outcome, Outcome::holds);
  EXPECT_EQ(verdict.sentence, "holds in 3 of 3 seeds: 38.0 ± 2.5 lower");
  EXPECT_EQ(verdict.statement,
            "solution rank (SR) is lower at temperature 100 than at temperature 1");
  EXPECT_EQ(verdict.difference.mean, -38);
}

TEST(Verdict, IsNotShownIfTheIntervalIncludesZeroEvenWhenEverySeedAgrees) {
  const auto verdict = verdict_on(pairs({{48, 49}, {40, 49}, {10, 49}}));
  EXPECT_EQ(verdict.outcome, Outcome::not_shown);
  EXPECT_EQ(verdict.seeds_holding, 3);
  EXPECT_TRUE(verdict.sentence.starts_with(
      "not shown: the 95 % interval of the difference includes zero (lower in 3 of 3 seeds"))
      << verdict.sentence;
}

TEST(Verdict, IsContradictedIfTheIntervalLiesOnTheOtherSide) {
  const auto verdict = verdict_on(pairs({{49, 10}, {49, 11}, {49, 12}}));
  EXPECT_EQ(verdict.outcome, Outcome::contradicted);
  EXPECT_EQ(verdict.sentence, "contradicted in 3 of 3 seeds: 38.0 ± 2.5 higher");
}

TEST(Verdict, OfFewerThanThreeSeedsIsNeverThatItHolds) {
  const auto one = verdict_on(pairs({{10, 49}}));
  EXPECT_EQ(one.outcome, Outcome::seen);
  EXPECT_EQ(one.sentence, "seen in 1 of 1 seed: 39 lower; fewer than three seeds do not show it");
  EXPECT_EQ(verdict_on(pairs({{10, 49}, {10, 49}})).outcome, Outcome::seen);
  EXPECT_EQ(verdict_on(pairs({{49, 10}})).outcome, Outcome::not_shown);
}

TEST(Verdict, SaysWhenNothingDiffers) {
  EXPECT_EQ(verdict_on(pairs({{9, 9}, {9, 9}, {9, 9}})).sentence,
            "not shown: no difference in 3 of 3 seeds");
}

TEST(Verdict, PairsRunsBySeed) {
  // Unpaired, the spread between seeds would hide the constant difference.
  const auto verdict = verdict_on(pairs({{9, 10}, {49, 50}, {99, 100}}));
  EXPECT_EQ(verdict.outcome, Outcome::holds);
  const auto strangers = verdict_on({run_with_rank(100, 0, 3), run_with_rank(1, 1, 9)});
  EXPECT_EQ(strangers.sentence, "not measured: no seed has both values");
}

TEST(Verdict, IsNotMeasuredWithoutValues) {
  EXPECT_EQ(verdict_on({bare_run(100, 0), bare_run(1, 0)}).outcome, Outcome::not_measured);
  EXPECT_EQ(verdict_on({}).sentence, "not measured: one side has no value");
}

TEST(Verdict, IsGivenPerContextThatTheClaimLeavesOpen) {
  Runs runs;
  for (const char* model : {"mlp", "vit"}) {
    for (auto run : pairs({{10, 49}, {11, 49}, {12, 49}})) {
      run.config.set("model.name", model);
      runs.push_back(run);
    }
  }
  const auto all = verdicts(runs, {kLowerRank});
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[0].context, "model mlp");
  EXPECT_EQ(all[1].seeds, 3);
}

TEST(Verdict, RefusesToPairWhenASeedFitsTwice) {
  auto runs = pairs({{10, 49}});
  runs.push_back(run_with_rank(100, 0, 20));
  EXPECT_EQ(verdict_on(runs).sentence,
            "not measured: more than one run per seed fits one side of the claim");
}

TEST(Verdict, IsGivenPerDetectorAndInPercentagePoints) {
  auto low = bare_run(1, 0);
  auto high = bare_run(100, 0);
  for (const char* detector : {"msp", "neco"}) {
    low.readings.push_back({.name = "auroc", .value = 0.7, .detector = detector, .ood = "svhn"});
    high.readings.push_back({.name = "auroc", .value = 0.8, .detector = detector, .ood = "svhn"});
  }
  auto claim = kLowerRank;
  claim.reading = "auroc";
  claim.direction = "higher";
  const auto all = verdicts({low, high}, {claim});
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[1].quantity.detector, "neco");
  EXPECT_NE(all[1].sentence.find("10.0 points higher"), std::string::npos) << all[1].sentence;
}

TEST(Verdict, ComparesRanksAtEqualAccuracy) {
  auto low = bare_run(1, 0);
  auto high = bare_run(100, 0);
  add_metrics(low, {{0.5, 30}, {0.9, 40}});
  add_metrics(high, {{0.4, 4}, {0.5, 5}});
  auto claim = kLowerRank;
  claim.reading = kRankAtEqualAccuracy;
  EXPECT_EQ(verdict_on({low, high}, claim).difference.mean, -25);
}

TEST(Verdict, SaysThatARunIsNotFinished) {
  auto runs = pairs({{10, 49}});
  runs[0].status = RunStatus::stopped;
  EXPECT_TRUE(verdict_on(runs).sentence.ends_with("(some runs are not finished)"));
}

TEST(VerdictTable, HasARowPerVerdict) {
  const auto table = verdict_table(verdicts(pairs({{10, 49}}), {kLowerRank}));
  ASSERT_EQ(table.rows.size(), 1);
  EXPECT_EQ(table.columns[1].name, "verdict");
}

}  // namespace kelvin::verdict_test
