#include "kelvin/experiment/run/run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/tasks/calibrate.h"
#include "kelvin/formats/npz_file.h"
#include "kelvin/formats/png_file.h"
#include "kelvin/model/tensors_file.h"
#include "kelvin/runs/run_folder.h"
#include "tests/support/command.h"
#include "tests/support/damaged_runs.h"
#include "tests/support/errors.h"
#include "tests/support/events.h"
#include "tests/support/requests.h"
#include "tests/support/tiny_run.h"

namespace kelvin::run_test {

namespace fs = std::filesystem;

std::string text_of(const Readings& readings) {
  std::string text;
  for (const auto& reading : readings) {
    text += fields_of(reading).dump() + " " + reading.definition.dump() + "\n";
  }
  return text;
}

// One run that the tests below only look at.
class FinishedRun : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    kept_folder = new TemporaryFolder;
    double now = 0;
    RunContext context;
    context.seconds = [now]() mutable { return now += 0.5; };
    context.report_progress = [](const Progress& progress) { seen_phases.insert(progress.phase); };
    kelvin::run(tiny_config(), *kept_folder / "first", {{"command", "test"}}, context);
    kelvin::run(tiny_config(), *kept_folder / "second", kNoMetadata, {});
    first_run = new kelvin::Run(load_run(*kept_folder / "first"));
  }
  static void TearDownTestSuite() {
    delete first_run;
    delete kept_folder;
  }

  static double reading(const std::string& name, const std::string& split) {
    for (const auto& each : first_run->readings) {
      if (each.name == name && each.split == split) return each.value;
    }
    ADD_FAILURE() << "no reading " << name;
    return 0;
  }

  static fs::path first() { return first_run->path; }
  static fs::path second() { return *kept_folder / "second"; }

  static inline TemporaryFolder* kept_folder = nullptr;
  static inline const kelvin::Run* first_run = nullptr;
  static inline std::set<std::string> seen_phases = {};
};

TEST_F(FinishedRun, SaysThatItIsFinished) {
  EXPECT_EQ(first_run->status, RunStatus::finished);
  EXPECT_EQ(first_run->metadata.at("command"), "test");
}

TEST_F(FinishedRun, KeepsAConfigThatResolvesToItself) {
  const auto again = RunSettings::from(first_run->config).resolved;
  EXPECT_EQ(again.to_toml(), whole_file(first() / "config.toml"));
  EXPECT_TRUE(first_run->config.has("train.momentum"));
}

TEST_F(FinishedRun, HasALineOfMetricsBeforeTrainingAndAfterEachEpoch) {
  ASSERT_EQ(first_run->metrics.size(), 3U);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const auto& line = first_run->metrics[static_cast<size_t>(epoch)];
    EXPECT_EQ(line.at("epoch"), epoch);
    EXPECT_EQ(line.at("step"), 4 * epoch);
    EXPECT_EQ(line.at("temperature"), 2);
  }
  EXPECT_LT(first_run->metrics[2].at("loss").get<double>(),
            first_run->metrics[0].at("loss").get<double>());
}

TEST_F(FinishedRun, TellsTensorboardWhatItsMetricsSay) {
  std::map<int64_t, std::map<std::string, float>> told;  // by step
  int64_t files = 0;
  for (const auto& entry : fs::directory_iterator(first())) {
    if (!entry.path().filename().string().starts_with("events.out.tfevents.")) continue;
    ++files;
    for (const auto& event : read_events(entry.path())) {
      told[event.step].insert(event.values.begin(), event.values.end());
    }
  }
  EXPECT_EQ(files, 1);
  int64_t compared = 0;
  for (const auto& line : first_run->metrics) {
    const auto& values = told[line.at("step").get<int64_t>()];
    for (const auto& [name, value] : line.items()) {
      if (name == "step" || !value.is_number()) continue;
      ASSERT_TRUE(values.contains(name)) << name;
      EXPECT_EQ(values.at(name), value.get<float>()) << name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 20);
}

TEST_F(FinishedRun, SaysInTheLastLineWhatTheReadingsSay) {
  const auto& last = first_run->metrics.back();
  // The samples of the metrics are all there are here.
  EXPECT_DOUBLE_EQ(last.at("test_accuracy"), reading("accuracy", "test"));
  EXPECT_DOUBLE_EQ(last.at("train_accuracy"), reading("accuracy", "train"));
  EXPECT_DOUBLE_EQ(last.at("test_loss"), reading("nll", "test"));
  EXPECT_DOUBLE_EQ(last.at("logits_norm"), reading("logits_norm", "test"));
  EXPECT_DOUBLE_EQ(last.at("solution_rank"), reading("solution_rank", "test"));
  EXPECT_DOUBLE_EQ(last.at("logits_norm").get<double>() /
                       first_run->metrics.front().at("logits_norm").get<double>(),
                   reading("logits_norm_growth", "test"));
}

TEST_F(FinishedRun, DefinesEveryReading) {
  std::set<std::string> names;
  for (const auto& each : first_run->readings) {
    names.insert(each.name);
    EXPECT_FALSE(each.definition.empty()) << each.name;
    EXPECT_TRUE(std::isfinite(each.value)) << each.name;
  }
  for (const char* name :
       {"accuracy", "nll", "logits_norm", "logits_norm_growth", "solution_rank", "singular_value",
        "post_softmax_rank", "probe_accuracy", "kappa", "rho", "auroc", "fpr95_id"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_TRUE(fs::exists(first() / "definitions.json"));
}

TEST_F(FinishedRun, ProbesEveryLayerOnBothDatasets) {
  std::set<std::string> layers;
  for (const auto& each : first_run->readings) {
    if (each.name == "probe_accuracy") layers.insert(each.ood + "/" + each.layer);
  }
  EXPECT_EQ(layers,
            (std::set<std::string>{"/layers.0", "/layers.1", "/layers.2", "textures10/layers.0",
                                   "textures10/layers.1", "textures10/layers.2"}));
}

TEST_F(FinishedRun, KeepsTheScoresOfEachDetector) {
  ASSERT_EQ(first_run->scores.size(), 2U);
  EXPECT_EQ(first_run->scores[0].detector, "msp");
  EXPECT_EQ(first_run->scores[1].detector, "neco");
  for (const auto& scores : first_run->scores) {
    EXPECT_EQ(scores.ood, "textures10");
    EXPECT_EQ(scores.id_scores.size(), 128U);
    EXPECT_EQ(scores.ood_scores.size(), 128U);
  }
}

TEST_F(FinishedRun, KeepsTheSpectrumOfEachLineOfMetrics) {
  const auto curves = read_npz(first() / "curves.npz");
  EXPECT_EQ(curves.at("epochs").shape, (std::vector<int64_t>{3}));
  EXPECT_EQ(curves.at("logits_singular_values").shape, (std::vector<int64_t>{3, 10}));
}

TEST_F(FinishedRun, LeavesItsWeights) {
  EXPECT_TRUE(fs::is_symlink(first() / "checkpoints" / "last"));
  EXPECT_TRUE(fs::exists(first() / "checkpoints" / "last" / "model.safetensors"));
}

TEST_F(FinishedRun, NamesItsCheckpointAfterTheLastStep) {
  EXPECT_EQ(fs::read_symlink(first() / "checkpoints" / "last"), "step-8");
}

TEST_F(FinishedRun, TellsHowFarItIs) {
  EXPECT_TRUE(seen_phases.contains("train"));
  EXPECT_TRUE(seen_phases.contains("measure"));
}

TEST_F(FinishedRun, IsTheSameWhenRunAgain) {
  const auto other = load_run(second());
  EXPECT_EQ(text_of(other.readings), text_of(first_run->readings));
  const auto weights = fs::path("checkpoints") / "last" / "model.safetensors";
  EXPECT_EQ(whole_file(second() / weights), whole_file(first() / weights));
  EXPECT_EQ(whole_file(second() / "curves.npz"), whole_file(first() / "curves.npz"));
  EXPECT_EQ(whole_file(second() / "scores" / "neco@textures10.csv"),
            whole_file(first() / "scores" / "neco@textures10.csv"));
  ASSERT_EQ(other.metrics.size(), first_run->metrics.size());
  for (size_t i = 0; i < other.metrics.size(); ++i) {
    auto ours = first_run->metrics[i];
    auto theirs = other.metrics[i];
    for (const char* key : {"seconds", "images_per_second"}) {
      ours.erase(key);
      theirs.erase(key);
    }
    EXPECT_EQ(theirs.dump(), ours.dump());
  }
}

TEST_F(FinishedRun, MeasuredAgainGivesTheSameReadings) {
  const auto before = text_of(load_run(second()).readings);
  const auto again = measure_run(second(), {}, {});
  EXPECT_GT(again.size(), 50U);
  for (const auto& each : again) {
    EXPECT_NE(before.find(text_of({each})), std::string::npos) << text_of({each});
  }
  EXPECT_EQ(text_of(load_run(second()).readings), before);
}

TEST_F(FinishedRun, MeasuresOnlyWhatIsAskedFor) {
  std::set<std::string> names;
  for (const auto& each : measure_run(second(), request_for({"accuracy"}), {}))
    names.insert(each.name);
  EXPECT_EQ(names, (std::set<std::string>{"accuracy", "nll"}));
}

TEST_F(FinishedRun, IsNeverOverwritten) {
  EXPECT_EQ(error_of([] { kelvin::run(tiny_config(), first(), kNoMetadata, {}); }),
            first().string() +
                ": already holds a run; go on with it by kelvin resume, choose another --output or "
                "remove it");
  EXPECT_EQ(load_run(first()).status, RunStatus::finished);
}

TEST(Run, DiffersBetweenSeeds) {
  TemporaryFolder folder;
  const std::vector<std::string> small = {"measure.names=[\"accuracy\"]", "data.ood=[]",
                                          "train.epochs=1"};
  auto other = small;
  other.push_back("seed=2");
  run(tiny_config(small), folder / "a", kNoMetadata, {});
  run(tiny_config(other), folder / "b", kNoMetadata, {});
  EXPECT_NE(whole_file(folder / "a/checkpoints/last/model.safetensors"),
            whole_file(folder / "b/checkpoints/last/model.safetensors"));
}

TEST(Run, IsStoppedWhenTheContextAsksForIt) {
  TemporaryFolder folder;
  int steps = 0;
  RunContext context;
  context.should_stop = [&] { return ++steps == 6; };  // in the second epoch
  run(tiny_config(), folder / "run", kNoMetadata, context);
  const auto stopped = load_run(folder / "run");
  EXPECT_EQ(stopped.status, RunStatus::stopped);
  EXPECT_EQ(stopped.metrics.size(), 2U);
  EXPECT_TRUE(stopped.readings.empty());
}

std::vector<std::string> notes_of(const std::vector<std::string>& overrides) {
  TemporaryFolder folder;
  std::vector<std::string> notes;
  RunContext context;
  context.warn = [&](const std::string& text) { notes.push_back(text); };
  auto all = overrides;
  all.insert(all.end(), {"data.ood=[]", "measure.names=[\"accuracy\"]", "train.epochs=12",
                         "train.batch_size=32", "model.width=64"});
  run(tiny_config(all), folder / "run", kNoMetadata, context);
  return notes;
}

TEST(StalledRun, IsNoticedAtAHighTemperatureAndASmallRate) {
  const auto notes = notes_of({"train.temperature=1000", "train.lr=0.01"});
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("sits on the plateau of uniform outputs"), std::string::npos) << notes[0];
  EXPECT_NE(notes[0].find("T = 1000"), std::string::npos) << notes[0];
}

TEST(StalledRun, IsNotSeenWhereTrainingWorks) {
  EXPECT_EQ(notes_of({"train.temperature=1", "train.lr=0.1"}), std::vector<std::string>());
}

TEST(Run, MeasuresAtTheTemperatureItLearned) {
  TemporaryFolder folder;
  run(tiny_config({"data.ood=[]", "train.temperature=4", "train.temperature_schedule=learned"}),
      folder / "run", kNoMetadata, {});
  const auto learned = load_run(folder / "run");
  const double temperature = learned.metrics.back().at("temperature");
  EXPECT_NE(temperature, 4);
  for (const auto& each : learned.readings) {
    if (each.name != "nll") continue;
    EXPECT_DOUBLE_EQ(each.definition.at("temperature"), temperature);
  }
  EXPECT_DOUBLE_EQ(learned.metrics.back().at("test_loss"), [&] {
    for (const auto& each : learned.readings) {
      if (each.name == "nll" && each.split == "test") return each.value;
    }
    return 0.0;
  }());
}

TEST(Run, TrainsInEveryWayThereIs) {
  TemporaryFolder folder;
  int number = 0;
  for (const std::vector<std::string>& changes : std::vector<std::vector<std::string>>{
           {"train.loss=mse", "train.optimizer=adam", "train.lr=0.001"},
           {"train.loss=logit_norm", "train.temperature=0.04", "train.lr=0.03"},
           {"train.loss=focal", "train.precision=bf16"},
           {"train.loss_smoothing=0.1", "train.schedule=one-cycle"},
           {"train.optimizer=adamw", "train.lr=0.001", "train.clip_norm=1"},
           {"train.optimizer=sgdw", "train.schedule=step", "train.milestones=[1]"},
           {"train.temperature_schedule=cyclic", "train.temperature_end=5"},
           {"train.temperature_schedule=warm", "train.temperature_end=50",
            "train.lr_scale_with_t=sqrt"}}) {
    auto all = changes;
    all.insert(all.end(),
               {"data.ood=[]", "measure.names=[\"accuracy\"]", "train.epochs=8", "model.width=64"});
    const auto path = folder / std::to_string(number++);
    run(tiny_config(all), path, kNoMetadata, {});
    const auto done = load_run(path);
    EXPECT_EQ(done.status, RunStatus::finished) << changes[0];
    EXPECT_GT(done.metrics.back().at("train_accuracy").get<double>(),
              done.metrics.front().at("train_accuracy").get<double>())
        << changes[0];
  }
}

TEST(Run, WithOneTestImageOrLogitsOfZeroStillEnds) {
  TemporaryFolder folder;
  kelvin::run(tiny_config({"model.norm_after_logits=batch", "data.test_samples=1", "train.epochs=1",
                           "measure.names=[\"accuracy\"]", "data.ood=[]"}),
              folder / "one", kNoMetadata, {});
  EXPECT_EQ(load_run(folder / "one").status, RunStatus::finished);
  kelvin::run(tiny_config({"init.scale=1e-30", "model.depth=8", "train.epochs=1", "data.ood=[]",
                           "measure.names=[\"accuracy\"]"}),
              folder / "zero", kNoMetadata, {});
  EXPECT_EQ(load_run(folder / "zero").status, RunStatus::finished);
}

TEST(Run, StartsFromPretrainedWeights) {
  TemporaryFolder folder;
  kelvin::run(tiny_config({"train.epochs=2"}), folder / "first", kNoMetadata, {});
  const auto weights = folder / "first/checkpoints/last/model.safetensors";
  kelvin::run(tiny_config({"init.pretrained=" + weights, "train.lr=1e-9"}), folder / "second",
              kNoMetadata, {});
  const auto accuracy = [&](const std::string& name, size_t line) {
    return load_run(folder / name).metrics.at(line).at("test_accuracy").get<double>();
  };
  EXPECT_EQ(accuracy("second", 0), accuracy("first", 2));
}

// Its name would make names of files that no file system takes.
TEST(Run, MayHaveOodDataOfAVeryLongName) {
  TemporaryFolder folder;
  const auto photos = folder.path() / std::string(150, 'x') / std::string(150, 'y');
  fs::create_directories(photos / "cat");
  for (const char* name : {"1.png", "2.png"}) {
    write_png(photos / "cat" / name,
              {.width = 1, .height = 1, .rgb = std::vector<uint8_t>{1, 2, 3}});
  }
  const auto name = "imagefolder:" + photos.string();
  run(tiny_config({"data.ood=[\"" + name + "\"]", "measure.names=[\"accuracy\"]"}), folder / "run",
      kNoMetadata, {});
  const auto loaded = load_run(folder / "run");
  EXPECT_EQ(loaded.status, RunStatus::finished);
  ASSERT_FALSE(loaded.scores.empty());
  for (const auto& scores : loaded.scores) EXPECT_EQ(scores.ood, name);
}

TEST(Run, IsMeasuredWithoutAChangeIfNothingIsToBeStored) {
  TemporaryFolder folder;
  run(tiny_config({"data.ood=[]"}), folder / "run", kNoMetadata, {});
  const auto lock = RunLock::take(folder / "run");  // somebody else is at work in it
  const auto before = contents_of(folder / "run");
  auto request = request_for({"calibration"});
  request.stores = false;
  EXPECT_FALSE(measure_run(folder / "run", request, {}).empty());
  EXPECT_FALSE(calibrate({.run = folder / "run", .stores = false}, {}).empty());
  EXPECT_TRUE(contents_of(folder / "run") == before);
}

TEST(Run, TellsItsReadingsBeforeItStoresThem) {
  TemporaryFolder folder;
  run(tiny_config({"data.ood=[]"}), folder / "run", kNoMetadata, {});
  auto request = request_for({"accuracy"});
  Readings told;
  request.on_readings = [&](const Readings& readings) {
    told = readings;
    fs::create_directories(folder / "run/readings.jsonl.part/x");  // storing will fail
  };
  const auto message = error_of([&] { measure_run(folder / "run", request, {}); });
  EXPECT_NE(message.find("readings.jsonl: cannot write"), std::string::npos) << message;
  EXPECT_FALSE(told.empty());
}

}  // namespace kelvin::run_test
