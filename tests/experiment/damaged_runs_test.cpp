#include "tests/support/damaged_runs.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <functional>
#include <sstream>
#include <string>

#include "kelvin/core/json_fields.h"
#include "kelvin/experiment/run/run.h"
#include "kelvin/experiment/tasks/calibrate.h"
#include "kelvin/experiment/tasks/truncate.h"
#include "tests/support/errors.h"
#include "tests/support/requests.h"
#include "tests/support/same_run.h"
#include "tests/support/tiny_run.h"

namespace kelvin::damaged_runs_test {

namespace fs = std::filesystem;

void copy_run(const fs::path& run, const fs::path& to) {
  fs::remove_all(to);
  fs::copy(run, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
}

// A run that was stopped after six of its eight steps, and what became of one that was not.
class DamagedRun : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    kept_folder = new TemporaryFolder;
    const auto config = tiny_config(
        {"data.ood=[]", "data.train_samples=64", "data.test_samples=32", "train.batch_size=16",
         "model.width=4", "model.depth=2", "measure.names=[\"accuracy\"]",
         "measure.epoch_samples=16", "measure.steps_per_decade=2", "measure.during=[\"alignment\"]",
         "train.temperature_schedule=learned", "train.optimizer=adam", "train.ema=0.9"});
    run(config, *kept_folder / "straight", kNoMetadata, {});
    int asked = 0;
    RunContext context;
    context.should_stop = [&] { return ++asked == 6; };
    run(config, *kept_folder / "stopped", kNoMetadata, context);
  }
  static void TearDownTestSuite() { delete kept_folder; }

  DamagedRun() { copy_run(*kept_folder / "stopped", run_); }

  void go_on(bool is_inexact = false) const { resume(run_, kNoMetadata, is_inexact, {}); }

  // Of going on with the run, which then must be as it was.
  std::string refusal() const {
    const auto before = contents_of(run_);
    auto message = error_of([&] { go_on(); });
    const auto after = contents_of(run_);
    EXPECT_TRUE(after == before) << message << differences(before, after);
    const auto prefix = run_.string() + "/";
    return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
  }

  void edit_config(const std::string& assignment) const {
    auto config = Config::load(run_ / "config.toml");
    config.apply_override(assignment);
    write_file_atomically(run_ / "config.toml", config.to_toml());
  }

  // Changes a JSON file, or the line of one.
  void edit_json(const std::string& file, size_t line,
                 const std::function<void(nlohmann::ordered_json&)>& edit) const {
    std::istringstream stream(whole_file(run_ / file));
    const bool has_lines = file.ends_with(".jsonl");
    std::string text;
    std::string each;
    for (size_t i = 0; has_lines && std::getline(stream, each); ++i) {
      auto json = nlohmann::ordered_json::parse(each);
      if (i == line) edit(json);
      text += json.dump() + "\n";
    }
    if (!has_lines) {
      auto json = nlohmann::ordered_json::parse(stream.str());
      edit(json);
      text = json.dump(1) + "\n";
    }
    write_file_atomically(run_ / file, text);
  }

  static inline TemporaryFolder* kept_folder = nullptr;
  TemporaryFolder folder_;
  fs::path run_ = folder_.path() / "run";
};

TEST_F(DamagedRun, GoesOnIfItIsWhole) {
  go_on();
  expect_same_run(run_, *kept_folder / "straight");
}

TEST_F(DamagedRun, MustTellTheNormsItStartedWith) {
  const auto edit = [&](const nlohmann::ordered_json& norm) {
    copy_run(*kept_folder / "stopped", run_);
    edit_json("metrics.jsonl", 0, [&](auto& line) {
      // Of the same length, as its checkpoint expects of the file.
      const auto length = line.dump().size();
      for (const char* key : {"logits_norm", "solution_rank", "test_loss"}) line.erase(key);
      if (!norm.is_null()) line["logits_norm"] = norm;
      line["filler"] = "";
      line["filler"] = std::string(length - line.dump().size(), 'x');
    });
    return refusal();
  };
  EXPECT_EQ(edit(nullptr), "metrics.jsonl: line 1: logits_norm: is missing");
  EXPECT_EQ(edit("abc"), "metrics.jsonl: line 1: logits_norm: must be a number, is \"abc\"");
}

TEST_F(DamagedRun, MustTellWhichDataItHad) {
  edit_json("metadata.json", 0, [](auto& metadata) { metadata.erase("data_md5"); });
  EXPECT_EQ(refusal(),
            "metadata.json: data_md5: is missing, so that nobody can tell whether these are the "
            "data it was trained on; --inexact goes on nevertheless");
  go_on(/*is_inexact=*/true);
  EXPECT_EQ(load_run(run_).status, RunStatus::finished);
  copy_run(*kept_folder / "stopped", run_);
  edit_json("metadata.json", 0, [](auto& metadata) { metadata["data_md5"] = 5; });
  EXPECT_EQ(refusal(), "metadata.json: data_md5: must be an object, is 5");
}

TEST_F(DamagedRun, MustHaveTheConfigItStartedWith) {
  const std::vector<std::pair<std::string, std::string>> edits = {
      {"train.temperature=3", "train.temperature 3.0 instead of 2.0"},
      {"seed=5", "seed 5 instead of 1"},
      {"train.lr=0.5", "train.lr 0.5 instead of 0.1"},
      {"train.epochs=3", "train.epochs 3 instead of 2"},
      {"train.batch_size=8", "train.batch_size 8 instead of 16"},
      {"measure.names=[\"logits_norm\"]",
       R"(measure.names ["logits_norm"] instead of ["accuracy"])"}};
  for (const auto& [assignment, shown] : edits) {
    copy_run(*kept_folder / "stopped", run_);
    edit_config(assignment);
    EXPECT_EQ(refusal(), "config.toml: was changed since the run started: " + shown +
                             "; change it back, or go on with --inexact, which writes the change "
                             "down");
  }
}

// --inexact is no way out of those.
TEST_F(DamagedRun, IsNotPromisedToGoOnWithOtherDataOrWeights) {
  const std::vector<std::pair<std::string, std::string>> edits = {
      {"data.train_samples=48", "data.train_samples 48 instead of 64"},
      {"data.name=glyphs100", "data.name \"glyphs100\" instead of \"glyphs10\""},
      {"model.width=5", "model.width 5 instead of 4"},
      {"train.optimizer=sgd", "train.optimizer \"sgd\" instead of \"adam\""}};
  for (const auto& [assignment, shown] : edits) {
    copy_run(*kept_folder / "stopped", run_);
    edit_config(assignment);
    EXPECT_EQ(refusal(), "config.toml: was changed since the run started: " + shown +
                             "; change it back, or if images and weights are those of its "
                             "checkpoint nevertheless, go on with --inexact, which writes the "
                             "change down");
    EXPECT_NE(error_of([&] { go_on(/*is_inexact=*/true); }), "") << assignment;
  }
}

TEST_F(DamagedRun, GoesOnWithAnotherConfigIfAskedToAndSaysSo) {
  edit_config("train.epochs=3");
  std::vector<std::string> warnings;
  RunContext context;
  context.warn = [&](const std::string& text) { warnings.push_back(text); };
  resume(run_, kNoMetadata, /*is_inexact=*/true, context);
  const auto loaded = load_run(run_);
  EXPECT_EQ(loaded.status, RunStatus::finished);
  EXPECT_EQ(loaded.metrics.back().at("epoch"), 3);
  const auto changes = changes_of(loaded);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].key, "train.epochs");
  EXPECT_EQ(changes[0].from, 2);
  EXPECT_EQ(changes[0].to, 3);
  EXPECT_EQ(loaded.metadata.at("config").at("train.epochs"), 3);
  ASSERT_FALSE(warnings.empty());
  EXPECT_EQ(warnings[0], "goes on with other settings: train.epochs 3 instead of 2");
}

// One of before the config was written down.
TEST_F(DamagedRun, GoesOnWithoutARecordOfItsConfig) {
  edit_json("metadata.json", 0, [](auto& metadata) { metadata.erase("config"); });
  go_on();
  EXPECT_EQ(load_run(run_).status, RunStatus::finished);
}

TEST_F(DamagedRun, GoesOnWithOtherBatchesIfAskedTo) {
  edit_config("train.batch_size=8");
  go_on(/*is_inexact=*/true);
  EXPECT_EQ(load_run(run_).status, RunStatus::finished);
}

TEST_F(DamagedRun, CannotGoOnToAnEndThatItHasPassed) {
  edit_config("train.batch_size=32");
  const auto before = contents_of(run_);
  EXPECT_EQ(error_of([&] { go_on(/*is_inexact=*/true); }),
            "train: 6 steps are done, more than these settings have in all, 4");
  EXPECT_TRUE(contents_of(run_) == before);
}

TEST_F(DamagedRun, WhoseLinksBecameFoldersGoesOnToTheSameBits) {
  fs::remove_all(run_);
  fs::copy(*kept_folder / "stopped", run_, fs::copy_options::recursive);  // as cp -rL
  ASSERT_FALSE(fs::is_symlink(run_ / "checkpoints/last"));
  go_on();
  expect_same_run(run_, *kept_folder / "straight");
}

TEST_F(DamagedRun, WhoseLinksWereLostGoesOnToTheSameBits) {
  for (const char* name : {"last", "best"}) fs::remove(run_ / "checkpoints" / name);
  go_on();
  expect_same_run(run_, *kept_folder / "straight");
}

TEST_F(DamagedRun, IsLeftAsItIsIfItsCheckpointIsDamaged) {
  const auto last = fs::canonical(run_ / "checkpoints/last");
  for (const char* name : {"model.safetensors", "training.safetensors", "training.json"}) {
    for (const std::string content : {"", "x", "{}"}) {
      copy_run(*kept_folder / "stopped", run_);
      write_file_atomically(last / name, content);
      EXPECT_NE(refusal().find(name), std::string::npos) << name << " " << content;
    }
  }
  copy_run(*kept_folder / "stopped", run_);
  const auto contradiction = last.lexically_relative(run_).string() + "/training.json";
  edit_json(contradiction, 0, [](auto& facts) { facts["epoch"] = 0; });
  EXPECT_NE(refusal().find("its last checkpoint contradicts itself"), std::string::npos);
  copy_run(*kept_folder / "stopped", run_);
  edit_json(contradiction, 0, [](auto& facts) { facts["step"] = 5; });
  EXPECT_NE(refusal().find("step: must be that of its folder"), std::string::npos);
}

TEST_F(DamagedRun, IsLeftAsItIsIfAFileBecameAFolder) {
  for (const char* name : {"metrics.jsonl", "trajectory.jsonl", "metadata.json", "status",
                           "trajectory_definitions.json", "curves.npz"}) {
    copy_run(*kept_folder / "stopped", run_);
    fs::remove(run_ / name);
    fs::create_directory(run_ / name);
    EXPECT_NE(refusal().find(std::string(name) + ": is a folder, must be a file"),
              std::string::npos)
        << name;
  }
  copy_run(*kept_folder / "stopped", run_);
  fs::remove_all(run_ / "checkpoints");
  write_file_atomically(run_ / "checkpoints", "");
  EXPECT_EQ(refusal(), "checkpoints: is a file, must be a folder");
}

class DamagedRunSlow : public DamagedRun {};

TEST_F(DamagedRunSlow, IsMeasuredAndResumedOrRefused) {
  const auto rounds = fuzz_rounds(1500);
  const auto affordable = [&](const std::string& what) { return !what.starts_with("config.toml"); };
  RunContext context;
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    copy_run(*kept_folder / "stopped", run_);
    RunDamage damage(static_cast<uint32_t>(round));
    const auto what = damage.damage(run_);
    const auto told = "round " + std::to_string(round) + ": " + what;
    const auto work = [&](const std::function<void()>& action) {
      expect_value_or_unchanged(run_, told, [&] {
        try {
          action();
        } catch (const c10::Error& error) {  // as compute_api.cpp translates it
          const std::string message = error.what_without_backtrace();
          check(message.find("DefaultCPUAllocator") == std::string::npos, message);
          throw;
        }
      });
    };
    // Another config may ask for hours or for all memory; going on checks it against the metadata.
    if (affordable(what)) {
      switch (round % 3) {
        case 0:
          work([&] { measure_run(run_, request_for({"accuracy"}), context); });
          break;
        case 1:
          work([&] { calibrate({.run = run_}, context); });
          break;
        default:
          work([&] { truncate({.run = run_}, context); });
      }
    }
    work([&] { resume(run_, kNoMetadata, /*is_inexact=*/false, context); });
  }
}

}  // namespace kelvin::damaged_runs_test
