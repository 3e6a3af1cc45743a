#include "kelvin/runs/run_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/fake_run.h"

namespace kelvin::run_folder_test {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Why a run is refused after one of its files got another content, without the folder's path.
std::string refusal_of(const std::string& file, const std::string& content) {
  const TemporaryFolder folder;
  write_fake_run(folder.path() / "run", 1, 0, 5);
  fs::create_directories(folder / "run/scores");
  write_file_atomically(folder / ("run/" + file), content);
  const auto message = error_of([&] { load_run(folder / "run"); });
  EXPECT_TRUE(message.starts_with(folder / "run/")) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message.substr(std::min((folder / "run/").size(), message.size()));
}

TEST(RunFolder, IsLoadedAsItWasWritten) {
  const TemporaryFolder folder;
  const auto run = new_run(folder.path() / "deep/run");
  run.append_metrics({{"step", 0}, {"loss", 2.5}});
  run.append_metrics({{"step", 10}, {"loss", 1.5}});
  run.add_readings({{.name = "accuracy", .value = 0.5}});
  run.write_scores({.detector = "msp", .ood = "textures", .id_scores = {0.1}, .ood_scores = {}});
  run.set_status(RunStatus::finished);

  const auto loaded = load_run(folder.path() / "deep/run");
  EXPECT_EQ(loaded.path, folder.path() / "deep/run");
  EXPECT_EQ(loaded.config.values(), (Values{{"seed", 3}, {"train.lr", 0.5}}));
  EXPECT_EQ(loaded.metadata, (Json{{"commit", "abc"}}));
  EXPECT_EQ(loaded.metrics,
            (std::vector<Json>{{{"step", 0}, {"loss", 2.5}}, {{"step", 10}, {"loss", 1.5}}}));
  ASSERT_EQ(loaded.readings.size(), 1U);
  EXPECT_EQ(loaded.readings[0].name, "accuracy");
  EXPECT_EQ(loaded.scores.size(), 1U);
  EXPECT_EQ(loaded.status, RunStatus::finished);
}

TEST(RunFolder, IsRunningAndEmptyAtFirst) {
  const TemporaryFolder folder;
  new_run(folder.path() / "run");
  const auto loaded = load_run(folder.path() / "run");
  EXPECT_EQ(loaded.status, RunStatus::running);
  EXPECT_TRUE(loaded.metrics.empty());
  EXPECT_TRUE(loaded.readings.empty());
  EXPECT_TRUE(loaded.scores.empty());
}

TEST(RunFolder, KeepsEveryStatus) {
  const TemporaryFolder folder;
  const auto run = new_run(folder.path() / "run");
  for (const auto status :
       {RunStatus::running, RunStatus::finished, RunStatus::stopped, RunStatus::failed}) {
    run.set_status(status);
    EXPECT_EQ(load_run(run.path()).status, status) << name_of(status);
  }
}

TEST(RunFolder, KeepsEveryBitOfScoresInTheOrderOfDetectors) {
  const TemporaryFolder folder;
  const auto run = new_run(folder.path() / "run");
  const std::vector<double> id = {1.0 / 3, -1e-300, 1e300, 0};
  const std::vector<double> ood = {std::numeric_limits<double>::infinity(), std::nan("")};
  run.write_scores({.detector = "neco", .ood = "b", .id_scores = {1}, .ood_scores = {2}});
  run.write_scores({.detector = "msp", .ood = "set.v1", .id_scores = id, .ood_scores = ood});
  run.write_scores({.detector = "msp", .ood = "a", .id_scores = {1}, .ood_scores = {2}});
  const auto scores = load_run(run.path()).scores;
  ASSERT_EQ(scores.size(), 3U);
  EXPECT_EQ(scores[0].ood, "a");
  EXPECT_EQ(scores[1].ood, "set.v1");
  EXPECT_EQ(scores[1].id_scores, id);
  ASSERT_EQ(scores[1].ood_scores.size(), 2U);
  EXPECT_TRUE(std::isinf(scores[1].ood_scores[0]));
  EXPECT_TRUE(std::isnan(scores[1].ood_scores[1]));
  EXPECT_EQ(scores[2].detector, "neco");
}

TEST(RunFolder, KeepsScoresOnDatasetsThatAreCalledByAPath) {
  const TemporaryFolder folder;
  const auto run = new_run(folder.path() / "run");
  const std::string name = "imagefolder:/photos/100%2F/v1.0";
  run.write_scores({.detector = "msp", .ood = name, .id_scores = {1}, .ood_scores = {2}});
  const auto scores = load_run(run.path()).scores;
  ASSERT_EQ(scores.size(), 1U);
  EXPECT_EQ(scores[0].detector, "msp");
  EXPECT_EQ(scores[0].ood, name);
}

TEST(RunFolder, CanBeOpenedToAddReadings) {
  const TemporaryFolder folder;
  new_run(folder.path() / "run").set_status(RunStatus::finished);
  RunFolder::open(folder.path() / "run").add_readings({{.name = "kappa", .value = 0.5}});
  const auto loaded = load_run(folder.path() / "run");
  EXPECT_EQ(loaded.readings.size(), 1U);
  EXPECT_EQ(loaded.status, RunStatus::finished);
}

TEST(RunFolder, IsNotOpenedWhereThereIsNoRun) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { RunFolder::open(folder.path()); }),
            folder.path().string() + ": is not a run folder (no config.toml)");
  EXPECT_EQ(error_of([&] { RunFolder::open(folder / "none"); }),
            (folder / "none") + ": no such folder");
}

TEST(RunFolder, RefusesAFolderThatHoldsARunAndKeepsIt) {
  const TemporaryFolder folder;
  new_run(folder.path() / "run").set_status(RunStatus::finished);
  EXPECT_EQ(error_of([&] { RunFolder::create(folder.path() / "run", Config(), Json::object()); }),
            (folder / "run") +
                ": already holds a run; go on with it by kelvin resume, choose another --output or "
                "remove it");
  const auto loaded = load_run(folder.path() / "run");
  EXPECT_EQ(loaded.config.at("seed"), 3);
  EXPECT_EQ(loaded.status, RunStatus::finished);
}

TEST(RunFolder, UsesAFolderThatHoldsOtherThings) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "notes.txt", "mine");
  new_run(folder.path());
  EXPECT_TRUE(is_run(folder.path()));
  EXPECT_EQ(read_file(folder / "notes.txt"), "mine");
}

TEST(CheckCanCreateRun, WritesNothing) {
  const TemporaryFolder folder;
  check_can_create_run(folder.path() / "a/b/c");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(CheckCanCreateRun, RefusesWhatCannotBeAFolder) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "x");
  EXPECT_EQ(error_of([] { check_can_create_run(""); }),
            "output: must be a folder, got an empty path");
  EXPECT_EQ(error_of([&] { check_can_create_run(folder / "file"); }),
            (folder / "file") + ": is a file, must be a folder");
  EXPECT_EQ(
      error_of([&] { check_can_create_run(folder / "file/run"); }),
      (folder / "file/run") + ": cannot be written: no right to write in " + (folder / "file"));
}

// Nobody may make folders in /proc, not even root.
TEST(RunFolder, SaysWhyItCannotBeMade) {
  const auto message = error_of([] { new_run("/proc/kelvin/run"); });
  EXPECT_TRUE(message.starts_with("/proc/kelvin/run: cannot be ")) << message;
}

TEST(LoadRun, ToleratesAMetricsFileCutAtAnyByteOfItsLastLine) {
  const TemporaryFolder folder;
  const auto run = new_run(folder.path() / "run");
  run.append_metrics({{"step", 0}, {"loss", 2.5}});
  const auto first = read_file(run.path() / "metrics.jsonl");
  run.append_metrics({{"step", 10}, {"note", "x}"}});
  const auto both = read_file(run.path() / "metrics.jsonl");
  for (size_t length = first.size(); length < both.size() - 1; ++length) {
    write_file_atomically(run.path() / "metrics.jsonl", both.substr(0, length));
    EXPECT_EQ(load_run(run.path()).metrics.size(), 1U) << "cut to " << length;
  }
  write_file_atomically(run.path() / "metrics.jsonl", both.substr(0, both.size() - 1));
  EXPECT_EQ(load_run(run.path()).metrics.size(), 2U) << "only the line's end is missing";
}

TEST(LoadRun, TakesARunWithoutAStatusForRunning) {
  const TemporaryFolder folder;
  const auto run = new_run(folder.path() / "run");
  fs::remove(run.path() / "status");
  fs::remove(run.path() / "metadata.json");
  const auto loaded = load_run(run.path());
  EXPECT_EQ(loaded.status, RunStatus::running);
  EXPECT_EQ(loaded.metadata, Json::object());
}

TEST(LoadRun, LooksAtTablesOfScoresOnly) {
  const TemporaryFolder folder;
  const auto run = new_run(folder.path() / "run");
  fs::create_directories(run.path() / "scores");
  write_file_atomically(run.path() / "scores/readme.txt", "anything");
  EXPECT_TRUE(load_run(run.path()).scores.empty());
}

TEST(LoadRun, SaysInOneLineWhatItCannotRead) {
  EXPECT_TRUE(refusal_of("config.toml", "not toml at all").starts_with("config.toml: line 1: "));
  EXPECT_EQ(refusal_of("metadata.json", "{"), "metadata.json: not a JSON object");
  EXPECT_EQ(refusal_of("metadata.json", "[1]"), "metadata.json: not a JSON object");
  EXPECT_EQ(refusal_of("metrics.jsonl", "{\"step\":0}\nx\n{}\n"),
            "metrics.jsonl: line 2: not a JSON object");
  EXPECT_EQ(refusal_of("metrics.jsonl", "5\n"), "metrics.jsonl: line 1: not a JSON object");
  EXPECT_EQ(refusal_of("status", "asleep\n"),
            "status: must hold running, finished, stopped or failed, got 'asleep'");
  EXPECT_EQ(refusal_of("status", ""),
            "status: must hold running, finished, stopped or failed, got ''");
  EXPECT_TRUE(refusal_of("readings.jsonl", "x\n").starts_with("readings.jsonl: line 1: "));
}

TEST(LoadRun, RefusesScoresThatAreNone) {
  for (const std::string line : {"id", "id,", "id,x", "id,1x", "id,1e999", "other,1", ""}) {
    EXPECT_EQ(refusal_of("scores/msp@a.csv", "population,score\nid,1\n" + line + "\n"),
              "scores/msp@a.csv: line 3: must be population,score, got '" + line + "'");
  }
}

TEST(LoadRun, RefusesWhatIsNoRun) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { load_run(folder / "absent"); }),
            (folder / "absent") + ": no such folder");
  EXPECT_EQ(error_of([&] { load_run(folder.path()); }),
            folder.path().string() + ": is not a run folder (no config.toml)");
}

TEST(RunFolderCreate, RefusesMetadataThatIsNoObject) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { RunFolder::create(folder.path() / "run", {}, 5); }),
            (folder / "run") + ": metadata must be a JSON object, got 5");
  EXPECT_FALSE(fs::exists(folder.path() / "run"));
}

TEST(LoadRun, DoesNotWaitAtAPipe) {
  const TemporaryFolder folder;
  for (const char* name : {"metrics.jsonl", "metadata.json", "status", "readings.jsonl",
                           "trajectory.jsonl", "definitions.json"}) {
    const auto run = folder.path() / name;
    write_fake_run(run, 1, 0, 5);
    fs::remove(run / name);
    ASSERT_EQ(::mkfifo((run / name).c_str(), 0600), 0);
    EXPECT_EQ(error_of([&] { load_run(run); }),
              (run / name).string() + ": must be a file, is a device or a pipe");
  }
}

TEST(LoadStatus, IsWhatTheRunSaidLast) {
  const TemporaryFolder folder;
  const auto run = RunFolder::create(folder / "run", {}, {});
  EXPECT_EQ(load_status(folder / "run"), RunStatus::running);
  run.set_status(RunStatus::stopped);
  EXPECT_EQ(load_status(folder / "run"), RunStatus::stopped);
  fs::remove(folder / "run/status");
  EXPECT_EQ(load_status(folder / "run"), RunStatus::running);
}

TEST(CheckCanCreateRun, RefusesWhatIsLeftOfARun) {
  const TemporaryFolder folder;
  for (const char* name : {"metrics.jsonl", "readings.jsonl", "notes.jsonl"}) {
    const auto run = folder.path() / name;
    fs::create_directories(run);
    write_file_atomically(run / name, "{}\n");
    EXPECT_EQ(error_of([&] { check_can_create_run(run); }),
              run.string() + ": holds parts of a run that lost its config.toml (" + name +
                  "); choose another --output or remove it");
  }
  fs::create_directories(folder / "run/config.toml");
  EXPECT_NE(error_of([&] { check_can_create_run(folder / "run"); }).find("(config.toml)"),
            std::string::npos);
}

TEST(CheckCanCreateRun, RefusesAPathWithoutRoomForWhatARunHolds) {
  std::string path = "/tmp";
  while (path.size() < 3900) path += "/" + std::string(99, 'x');
  const auto message = error_of([&] { check_can_create_run(path); });
  EXPECT_TRUE(message.ends_with("the path must have at most 3795 bytes, has " +
                                std::to_string(path.size())))
      << message;
}

TEST(ChangedSettings, AreWhatTheConfigSaysDifferently) {
  const TemporaryFolder folder;
  Config config;
  config.set("seed", 3);
  config.set("train.lr", 0.1);
  config.set("measure.bound", std::numeric_limits<double>::infinity());
  config.set("measure.gammas", std::vector<double>{0.5, std::numeric_limits<double>::infinity()});
  RunFolder::create(folder / "run", config, {{"config", config_record(config)}});
  const auto run = load_run(folder / "run");
  EXPECT_TRUE(changed_settings(run, config).empty());
  auto other = run.config;  // as it comes from its file
  EXPECT_TRUE(changed_settings(run, other).empty());
  other.set("train.lr", 0.25);
  other.set("new", 1);  // which an older version did not know
  const auto changes = changed_settings(run, other);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].key, "train.lr");
  EXPECT_EQ(changes[0].from, 0.1);
  EXPECT_EQ(changes[0].to, 0.25);
}

TEST(ChangedSettings, OfARunThatDoesNotKnowItsConfigAreNone) {
  const TemporaryFolder folder;
  new_run(folder.path() / "run");
  EXPECT_TRUE(changed_settings(load_run(folder.path() / "run"), Config()).empty());
  EXPECT_TRUE(changes_of(load_run(folder.path() / "run")).empty());
}

TEST(ChangedSettings, MustBeAnObject) {
  const TemporaryFolder folder;
  RunFolder::create(folder / "run", Config(), {{"config", 5}});
  const auto run = load_run(folder / "run");
  EXPECT_EQ(error_of([&] { changed_settings(run, Config()); }),
            (folder / "run/metadata.json") + ": config: must be an object, is 5");
}

TEST(RunFolder, WritesDownWhoWentOnWithWhichSettings) {
  const TemporaryFolder folder;
  const auto run = RunFolder::create(folder / "run", Config(), {{"config", {{"seed", 3}}}});
  run.add_resumption({.metadata = {{"command", "a"}}, .step = 5});
  run.add_resumption({.step = 7, .changes = {{.key = "seed", .from = 3, .to = 4}}});
  const auto loaded = load_run(folder / "run");
  ASSERT_EQ(loaded.metadata.at("resumed").size(), 2U);
  EXPECT_EQ(loaded.metadata["resumed"][0], (Json{{"step", 5}, {"command", "a"}}));
  EXPECT_EQ(loaded.metadata["config"]["seed"], 4);
  const auto changes = changes_of(loaded);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].key, "seed");
  EXPECT_EQ(changes[0].from, 3);
  EXPECT_EQ(changes[0].to, 4);
}

TEST(LoadLines, OfTheFirstBytesMustBeWhole) {
  const TemporaryFolder folder;
  const auto path = folder / "lines.jsonl";
  write_file_atomically(path, "{\"a\":1}\n{\"a\":2}\n{\"a");
  EXPECT_TRUE(load_lines(path, 0).empty());
  EXPECT_EQ(load_lines(path, 8).size(), 1U);
  EXPECT_EQ(load_lines(path, 16).size(), 2U);
  EXPECT_EQ(error_of([&] { load_lines(path, 9); }),
            path + ": was changed: its first 9 bytes must be whole lines");
  EXPECT_EQ(error_of([&] { load_lines(path, 99); }),
            path + ": must have at least 99 bytes, has 19");
}

}  // namespace kelvin::run_folder_test
