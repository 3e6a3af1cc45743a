#include "tests/support/damaged_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "kelvin/report/page/page.h"
#include "kelvin/report/tables/comparison.h"
#include "kelvin/report/tables/run_difference.h"
#include "kelvin/runs/prune.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin::damaged_runs_test {

namespace fs = std::filesystem;

// A real run of everything that a folder can hold, finished, and one that was stopped.
class DamagedRunsSlow : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    kept_folder = new TemporaryFolder;
    const std::vector<std::string> words = {
        "train",
        "--quiet",
        "--threads",
        "1",
        "--model",
        "mlp",
        "--dataset",
        "glyphs10",
        "--ood",
        "textures10",
        "--epochs",
        "2",
        "-b",
        "16",
        "--output",
        finished(),
        "model.width=4",
        "model.depth=2",
        "data.train_samples=64",
        "data.test_samples=32",
        "measure.epoch_samples=16",
        "measure.train_samples=64",
        "train.keep_checkpoints=true",
        "train.checkpoint_steps=3",
        "measure.steps_per_decade=2",
        R"(measure.names=["accuracy", "logits_norm", "solution_rank", "layer_spectrum", "linear_probe"])",
        R"(measure.during=["alignment"])",
        R"(measure.detectors=["msp", "neco"])",
        "measure.linear_probe.max_iterations=5"};
    const auto result = run_tool(words);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    fs::create_directories(finished() + "/features");
    fs::copy(finished() + "/curves.npz", finished() + "/features/test.npz");
    // As if it had been killed while it measured.
    fs::copy(finished(), stopped(), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    write_file_atomically(stopped() + "/status", "stopped\n");
  }
  static void TearDownTestSuite() { delete kept_folder; }

  static std::string finished() { return *kept_folder / "finished"; }
  static std::string stopped() { return *kept_folder / "stopped"; }

  // A fresh copy of one of the two.
  static void copy(const std::string& run, const std::string& to) {
    fs::remove_all(to);
    fs::create_directories(fs::path(to).parent_path());
    fs::copy(run, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }

  static inline TemporaryFolder* kept_folder = nullptr;
};

void read_as_verbs_do(const fs::path& run, const Run& other) {
  find_runs(run.parent_path());
  const auto loaded = load_run(run);
  const auto comparison = compare({loaded, other});
  comparison_table(comparison);
  comparison_records(comparison);
  comparison_notes(comparison);
  difference_text(run_difference(loaded, other, /*all=*/true), TableFormat::text);
  difference_text(run_difference(other, loaded), TableFormat::csv);
  const PageInput input{.title = "damaged", .runs = {loaded, other}};
  render_page(input);
  changes_of(loaded);
  changed_settings(loaded, other.config);
}

TEST_F(DamagedRunsSlow, AreReadOrRefusedByEveryReader) {
  const auto other = load_run(finished());
  const TemporaryFolder folder;
  const auto run = folder.path() / "runs/run";
  const auto rounds = fuzz_rounds(3'000);
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    copy(round % 2 == 0 ? finished() : stopped(), run);
    RunDamage damage(static_cast<uint32_t>(round));
    const auto what = "round " + std::to_string(round) + ": " + damage.damage(run);
    expect_value_or_unchanged(run, what, [&] { read_as_verbs_do(run, other); });
    expect_value_or_unchanged(run, what, [&] { prune_run(run, {.dry_run = true}); });
    expect_value_or_unchanged(run, what, [&] { prune_run(run, {.training_state = true}); });
  }
}

// What each verb is asked for; RUN stands for the damaged folder, OTHER for a whole one.
const std::vector<std::vector<std::string>> kCommands = {
    {"resume", "RUN", "-q"},
    {"resume", "RUN", "-q", "--inexact"},
    {"runs", "RUN"},
    {"compare", "RUN", "OTHER"},
    {"compare", "OTHER", "RUN", "--all", "-o", "json"},
    {"prune", "RUN"},
    {"prune", "RUN", "--training-state"},
    {"report", "RUN", "--output", "PAGE"},
    {"measure", "RUN", "-q", "--measures", "accuracy"},
    {"measure", "RUN", "-q", "--measures", "accuracy", "--no-store"},
    {"ood", "RUN", "-q", "--detectors", "msp"},
    {"probe", "RUN", "-q"},
    {"calibrate", "RUN", "-q"},
    {"truncate", "RUN", "-q"},
    {"train", "-q", "--model", "mlp", "--dataset", "glyphs10", "--output", "RUN"}};

// A config that asks for hours or for all memory is damage that no reader can see.
bool is_affordable(const std::string& damage) { return !damage.starts_with("config.toml"); }

TEST_F(DamagedRunsSlow, GiveOneLineAndExitCodeTwoOfEveryVerb) {
  const TemporaryFolder folder;
  const auto run = folder.path() / "run";
  const auto page = folder / "page.html";
  const auto rounds = fuzz_rounds(300);
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    auto words = kCommands.at(static_cast<size_t>(round) % kCommands.size());
    copy(words[0] == "resume" ? stopped() : finished(), run);
    RunDamage damage(static_cast<uint32_t>(1'000'000 + round));
    const auto what = damage.damage(run);
    const bool computes = words[0] != "runs" && words[0] != "compare" && words[0] != "prune" &&
                          words[0] != "report" && words[0] != "train";
    if (computes && !is_affordable(what)) continue;
    for (auto& word : words) {
      if (word == "RUN") word = run.string();
      if (word == "OTHER") word = finished();
      if (word == "PAGE") word = page;
    }
    const auto before = contents_of(run);
    const auto result = run_tool(words, {"OMP_NUM_THREADS=1"});
    SCOPED_TRACE("round " + std::to_string(round) + ": " + words[0] + ": " + what);
    EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 2)
        << result.exit_code << ": " << result.err;
    if (result.exit_code == 0) continue;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    const auto after = contents_of(run);
    EXPECT_TRUE(after == before) << result.err << differences(before, after);
  }
}

}  // namespace kelvin::damaged_runs_test
