#include "kelvin/experiment/tasks/plan.h"

#include <gtest/gtest.h>

#include "kelvin/experiment/config/run_settings.h"
#include "tests/support/errors.h"

namespace kelvin::plan_test {

RunSettings settings_of(const std::vector<std::string>& overrides) {
  Config config;
  for (const char* each :
       {"data.name=glyphs10", "data.train_samples=320", "data.test_samples=100", "model.name=mlp",
        "model.width=8", "model.depth=2", "train.batch_size=32", "train.epochs=6",
        "measure.epoch_samples=50", "measure.train_samples=200"}) {
    config.apply_override(each);
  }
  for (const auto& each : overrides) config.apply_override(each);
  return RunSettings::from(config);
}

RunCosts costs_of(const std::vector<std::string>& overrides = {}) {
  const auto settings = settings_of(overrides);
  RunContext context;
  double now = 0;
  context.seconds = [&now] { return now += 0.3; };  // each step takes so long
  context.peak_memory = [] { return int64_t{123}; };
  return run_costs(settings, load_dataset(settings.dataset, settings.request), context);
}

TEST(RunCosts, AreThoseOfAllSteps) {
  const auto costs = costs_of();
  EXPECT_NEAR(costs.training_minutes, 6 * 10 * 0.3 / 60, 1e-9);
  const double forward = 0.3 / 3 / 32;
  EXPECT_NEAR(costs.observing_minutes, 7 * 100 * forward / 60, 1e-9);
  EXPECT_NEAR(costs.measuring_minutes, 300 * forward / 60, 1e-9);
  EXPECT_EQ(costs.memory_bytes, 123);
}

TEST(RunCosts, CountBothViewsOfEachImage) {
  const auto costs = costs_of({"data.augment=crop-flip", "train.loss=info_nce"});
  EXPECT_NEAR(costs.training_minutes, 6 * 10 * 0.3 / 60, 1e-9);
  const double forward = 0.3 / 3 / 64;
  // Each look sees the images themselves and two views of them.
  EXPECT_NEAR(costs.observing_minutes, 7 * 300 * forward / 60, 1e-9);
  EXPECT_NEAR(costs.measuring_minutes, 300 * forward / 60, 1e-9);
}

TEST(RunCosts, CountOodSamplesThatAreLookedAt) {
  const double minute = 0.3 / 3 / 32 / 60;
  const auto samples = [&](const std::string& measure, const std::string& detectors) {
    const auto costs =
        costs_of({R"(data.ood=["textures10", "glyphs100"])", "measure.names=[\"" + measure + "\"]",
                  "measure.detectors=" + detectors});
    return costs.measuring_minutes / minute;
  };
  EXPECT_NEAR(samples("logits_norm", "[]"), 300, 1e-6);
  EXPECT_NEAR(samples("logits_norm", R"(["msp"])"), 300 + 2 * 100, 1e-6);
  EXPECT_NEAR(samples("linear_probe", "[]"), 300 + 2 * (200 + 100), 1e-6);
}

TEST(RunCosts, CountWhatCheckpointsHold) {
  const int64_t weights = 4 * (3072 * 8 + 8 + 8 * 10 + 10);
  EXPECT_EQ(costs_of({"train.momentum=0"}).disk_bytes, 3 * weights);
  EXPECT_EQ(costs_of().disk_bytes, 3 * 2 * weights);
  EXPECT_EQ(costs_of({"train.optimizer=adam"}).disk_bytes, 3 * 3 * weights);
  EXPECT_EQ(costs_of({"train.ema=0.9", "train.keep_checkpoints=true"}).disk_bytes, 7 * 3 * weights);
}

TEST(RunCosts, CountLooksAtLogSpacedSteps) {
  EXPECT_GT(costs_of({"measure.steps_per_decade=4"}).observing_minutes,
            costs_of().observing_minutes);
}

TEST(RunCosts, OfARunOfOneStepAreItsOwn) {
  const auto costs = costs_of({"train.batch_size=320", "train.epochs=1"});
  EXPECT_NEAR(costs.training_minutes, 0.3 / 60, 1e-9);
}

Config config_of(const std::vector<std::string>& overrides) {
  Config config;
  for (const char* each : {"data.name=glyphs10", "data.train_samples=64", "data.test_samples=16",
                           "model.name=mlp", "model.width=8", "model.depth=3"}) {
    config.apply_override(each);
  }
  for (const auto& each : overrides) config.apply_override(each);
  return config;
}

TEST(Plan, ShowsTheNormBesideItsPrediction) {
  const auto shown = plan(config_of({"model.bias=false"}), {});
  const double norm = shown.at("initial_logits_norm_per_sample");
  const double expected = shown.at("initial_logits_norm_expected");
  const double bound = shown.at("initial_logits_norm_bound");
  EXPECT_GT(norm, 0);
  EXPECT_LE(norm, bound);
  EXPECT_NEAR(bound / expected, std::sqrt(8.0), 1e-9);
  const double deviation = shown.at("last_weight_deviation");
  const double features = shown.at("initial_features_norm_per_sample");
  EXPECT_NEAR(bound, deviation * std::sqrt(10.0 * 8.0) * features, 1e-9 * bound);
}

TEST(Plan, ShowsTheTargetThatWasSet) {
  const auto shown = plan(config_of({"init.target_logits_norm=2.5"}), {});
  EXPECT_NEAR(shown.at("initial_logits_norm_per_sample").get<double>(), 2.5, 1e-4);
}

TEST(Plan, CountsTheEnlargedImages) {
  const auto macs_at = [](const std::string& side) {
    const auto shown = plan(config_of({"data.upsample=" + side}), {});
    return shown.at("macs_per_image").get<int64_t>();
  };
  EXPECT_EQ(macs_at("48"), 3 * 48 * 48 * 8 + 8 * 8 + 8 * 10);
}

TEST(Plan, CountsTheOperationsOfBothViews) {
  const auto one = plan(config_of({"data.augment=flip"}), {});
  const auto two =
      plan(config_of({"data.augment=flip", "train.loss=info_nce", "train.loss_dimensions=10"}), {});
  EXPECT_EQ(two.at("macs_per_image"), one.at("macs_per_image"));
  EXPECT_DOUBLE_EQ(two.at("training_gflop_per_1000_images").get<double>(),
                   2 * one.at("training_gflop_per_1000_images").get<double>());
}

TEST(Plan, TellsMinutesAndDisk) {
  RunContext context;
  double now = 0;
  context.seconds = [&now] { return now += 6; };
  const auto shown = plan(config_of({"train.batch_size=64", "train.epochs=10"}), context);
  EXPECT_NEAR(shown.at("estimated_training_minutes").get<double>(), 1, 1e-9);
  EXPECT_GT(shown.at("estimated_minutes").get<double>(), 1);
  EXPECT_GT(shown.at("estimated_disk_bytes").get<int64_t>(), 0);
}

TEST(InitialNorms, AreThoseOfEachSeed) {
  const auto lines = initial_norms(config_of({}), {3, 4, 3}, 50, {});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].at("norm_samples"), 50);
  EXPECT_EQ(lines[1].at("seed"), 4);
  const char* key = "initial_logits_norm_per_sample";
  EXPECT_EQ(lines[0].at(key), lines[2].at(key));
  EXPECT_NE(lines[0].at(key), lines[1].at(key));
}

TEST(InitialNorms, StopWhenAsked) {
  RunContext context;
  context.should_stop = [] { return true; };
  EXPECT_EQ(error_of([&] { initial_norms(config_of({}), {1, 2}, 8, context); }), "stopped");
}

}  // namespace kelvin::plan_test
