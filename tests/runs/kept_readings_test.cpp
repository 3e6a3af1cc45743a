#include "kelvin/runs/kept_readings.h"

#include <gtest/gtest.h>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/fake_run.h"

namespace kelvin::kept_readings_test {

namespace fs = std::filesystem;

Config small_config() {
  Config config;
  config.set("seed", 1);
  config.set("train.temperature", 3.0);
  config.set("measure.names", {"accuracy"});
  config.set("measure.detectors", {"neco"});
  return config;
}

TEST(ConfigHash, DependsOnWhatChangesResultsAndOnNothingElse) {
  const auto config = small_config();
  const auto hash = config_hash(config);
  EXPECT_EQ(hash.size(), 16U);
  const auto with = [&](const std::string& key, const Value& value) {
    auto changed = config;
    changed.set(key, value);
    return config_hash(changed);
  };
  EXPECT_NE(with("seed", 2), hash);
  EXPECT_NE(with("train.temperature", 30.0), hash);
  EXPECT_NE(with("detector.neco.dimensions", 5), hash);
  EXPECT_EQ(with("detector.knn.neighbours", 5), hash);  // no such detector is asked for
  EXPECT_EQ(with("measure.alignment.k", 5), hash);      // nor this measure
  EXPECT_EQ(with("train.checkpoint_steps", 7), hash);   // says what is written and when
  EXPECT_EQ(with("train.keep_checkpoints", true), hash);
  EXPECT_EQ(with("data.cache_images", true), hash);
}

// With readings of all kinds, as if it had been trained.
Run example_run(const fs::path& folder) {
  write_fake_run(folder, 10, 4, 12);
  const auto run = RunFolder::open(folder);
  Readings readings;
  for (int64_t i = 0; i < 20; ++i) {
    readings.push_back({.name = "singular_value",
                        .value = 1.0 / (1.0 + static_cast<double>(i)),
                        .split = "test",
                        .index = i,
                        .definition = {{"matrix", "logits"}, {"nested", {{"index", i}}}}});
    readings.push_back({.name = "singular_value",
                        .value = 0.25,
                        .layer = "fc1",
                        .index = i,
                        .definition = {{"matrix", "weights"}, {"index", i}}});
  }
  readings.push_back({.name = "auroc",
                      .value = 0.123456789012345,
                      .detector = "neco",
                      .ood = "svhn",
                      .interval = Interval{.low = 0.1, .high = 0.2},
                      .definition = {{"samples", 100}, {"positive", "ID"}}});
  run.add_readings(readings);
  return load_run(folder);
}

TEST(KeptReadings, ComeBackAsTheRunTheyWereOf) {
  const TemporaryFolder folder;
  const auto run = example_run(folder / "run");
  const auto path = keep_readings(folder / "kept", run, "kelvin sweep x --only y");
  EXPECT_EQ(path.filename(), config_hash(run.config) + ".json");
  const auto back = load_kept(path);
  EXPECT_EQ(back.status, RunStatus::finished);
  EXPECT_EQ(back.config.values(), run.config.values());
  EXPECT_EQ(back.metadata.at("command"), "kelvin sweep x --only y");
  EXPECT_EQ(back.metrics, run.metrics);
  // All but the curve of a layer.
  ASSERT_EQ(back.readings.size(), run.readings.size() - 20);
  for (const auto& reading : run.readings) {
    const bool is_dropped = !reading.layer.empty();
    const auto found = std::find_if(
        back.readings.begin(), back.readings.end(),
        [&](const Reading& other) { return identity_of(other) == identity_of(reading); });
    ASSERT_EQ(found == back.readings.end(), is_dropped) << fields_of(reading);
    if (is_dropped) continue;
    EXPECT_EQ(found->value, reading.value);
    EXPECT_EQ(found->definition, reading.definition);
  }
}

TEST(KeptReadings, AreTheSameBytesOfTheSameRun) {
  const TemporaryFolder folder;
  const auto run = example_run(folder / "run");
  const auto text = kept_text(run, "c");
  EXPECT_EQ(kept_text(load_run(folder / "run"), "c"), text);
  auto kept = run;
  write_file_atomically(folder / "x.json", text);
  kept.readings = load_kept(folder / "x.json").readings;
  EXPECT_EQ(kept_text(kept, "c"), text);
}

TEST(KeptReadings, AreThinnedToWhatFiguresDraw) {
  const TemporaryFolder folder;
  auto run = example_run(folder / "run");
  run.metrics.clear();
  for (int64_t step = 0; step <= 1000; ++step) {
    run.metrics.push_back(
        {{"step", step}, {"epoch", static_cast<double>(step) / 4}, {"loss", 1.0 / 3}});
    run.trajectory.push_back({.step = step, .epoch = static_cast<double>(step) / 4});
  }
  write_file_atomically(folder / "x.json", kept_text(run, ""));
  const auto back = load_kept(folder / "x.json");
  EXPECT_LE(back.metrics.size(), 65U);
  EXPECT_LE(back.trajectory.size(), 16U);
  EXPECT_EQ(back.metrics.back().at("step"), 1000);
  EXPECT_EQ(back.trajectory.back().step, 1000);
}

TEST(KeptReadings, AreFoundByConfigAlsoAfterNewSettingsCameUp) {
  const TemporaryFolder folder;
  const auto run = example_run(folder / "run");
  const auto path = keep_readings(folder / "kept", run, "");
  KeptReadings kept(folder / "kept");
  EXPECT_EQ(kept.find(run.config), path);
  auto newer = run.config;
  newer.set("train.something_new", 0);
  EXPECT_FALSE(kept.find(newer));
  kept.set_resolver([](const Config& config) {
    auto resolved = config;
    resolved.set("train.something_new", 0);
    return resolved;
  });
  EXPECT_EQ(kept.find(newer), path);
  newer.set("train.something_new", 1);
  EXPECT_FALSE(kept.find(newer));
  EXPECT_FALSE(KeptReadings(folder / "nowhere").find(run.config));
}

Run failed_run() {
  return {.path = "trial",
          .config = small_config(),
          .metadata = {{"failure", "the loss became nan"}},
          .metrics = {},
          .readings = {},
          .scores = {},
          .status = RunStatus::failed};
}

TEST(KeptReadings, AreAlsoWhatAFailureSaid) {
  const TemporaryFolder folder;
  const auto run = failed_run();
  const auto back = load_kept(keep_readings(folder / "kept", run, "kelvin sweep x --tune"));
  EXPECT_EQ(back.status, RunStatus::failed);
  EXPECT_EQ(back.metadata.at("failure"), "the loss became nan");
  EXPECT_EQ(back.config.values(), run.config.values());
  EXPECT_TRUE(back.readings.empty());
  write_file_atomically(folder / "x.json", "{\"failure\": 3}");
  EXPECT_NE(error_of([&] { load_kept(folder / "x.json"); }).find("failure"), std::string::npos);
}

TEST(KeptReadings, RefuseWhatIsNotFinishedAndWhatIsDamaged) {
  const TemporaryFolder folder;
  auto run = example_run(folder / "run");
  write_file_atomically(folder / "x.json",
                        "{\"config\": {}, \"definitions\": {\"a\": [\"b\", {}]}}");
  EXPECT_NE(error_of([&] { load_kept(folder / "x.json"); }).find("x.json"), std::string::npos);
  run.status = RunStatus::stopped;
  EXPECT_NE(error_of([&] { kept_text(run, ""); }).find("must be finished to be kept, is stopped"),
            std::string::npos);
}

}  // namespace kelvin::kept_readings_test
