#include <gtest/gtest.h>

#include <csignal>
#include <random>
#include <thread>

#include "kelvin/core/files.h"
#include "kelvin/runs/kept_readings.h"
#include "tests/support/command.h"
#include "tests/support/same_run.h"

namespace kelvin::sweep_test {

namespace fs = std::filesystem;

// Networks that are trained in a moment.
constexpr auto kTiny = R"(# Tiny
train.epochs = 2
train.batch_size = 50
train.checkpoint_steps = 2
[data]
name = "glyphs10"
train_samples = 200
test_samples = 100
[model]
name = "mlp"
width = 16
depth = 3
[measure]
names = ["accuracy", "solution_rank"]
train_samples = 100
epoch_samples = 50
)";

class SweepVerb : public testing::Test {
 protected:
  std::string recipe(const std::string& more) {
    auto path = folder_ / "tiny.toml";
    write_file_atomically(path, std::string(kTiny) + more);
    return path;
  }

  std::vector<std::string> words(const std::string& more, const std::string& output,
                                 const std::vector<std::string>& flags = {}) {
    std::vector<std::string> all = {"sweep",      recipe(more),     "--output", folder_ / output,
                                    "--readings", folder_ / "kept", "--quiet"};
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  }

  const TemporaryFolder folder_;
};

constexpr auto kTwoSeeds = "[sweep]\nseed = [1, 2]\n";

// One line, code 2, and nothing was made.
class BadRecipe : public SweepVerb {
 protected:
  std::string refusal(const std::string& more, const std::vector<std::string>& flags = {}) {
    const auto result = run_tool(words(more, "out", flags));
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_FALSE(fs::exists(folder_ / "out"));
    return result.err;
  }
};

TEST_F(BadRecipe, IsRefusedBeforeAnythingRuns) {
  const auto expect = [&](const std::string& more, const std::string& message) {
    const auto error = refusal(more);
    EXPECT_NE(error.find(message), std::string::npos) << error;
  };
  expect("[sweep]\ntrain.learning = [1]\n", "train.learning: no such setting");
  expect("[sweep]\nseed = []\n", "sweep.seed: must be a list of values, got []");
  expect("[sweep]\n", "[sweep]: names nothing to sweep over");
  expect("[sweep]\ntrain.temperature = [1, 0]\n",
         "run 'temperature=0': train.temperature: must be");
  expect("[[case]]\nname = \"a\"\n[[case]]\nname = \"a\"\nseed = 1\n", "two runs are called 'a'");
  expect("[sweep]\ntrain.lr = [0.1, 0.10]\n", "two runs are called 'lr=0.1'");
  expect("[[case]]\nname = \"a\"\n[[case]]\nname = \"b\"\n", "runs 'a' and 'b' have one config");
  expect(
      "[sweep]\nseed = [1, 2]\n[[claim]]\nreading = \"kappa\"\ndirection = \"lower\"\n"
      "at = { seed = 1 }\nagainst = { seed = 2 }\n",
      "claim on 'kappa': no measure of its runs reads that");
}

TEST_F(BadRecipe, ClaimsAReadingThatItsRunsDoNotHave) {
  const auto expect = [&](const std::string& reading, const std::string& of,
                          const std::string& message) {
    const auto error = refusal(
        "detectors = [\"neco\"]\n[sweep]\nseed = [1, 2]\n[[claim]]\n"
        "direction = \"lower\"\nat = { seed = 1 }\n"
        "against = { seed = 2 }\nreading = \"" +
        reading + "\"\n" + of + "\n");
    EXPECT_NE(error.find("claim on '" + reading + "': " + message), std::string::npos) << error;
  };
  expect("solution_rank", "gamma = 0.5", "gamma: is not read at 0.5 but at 0.0001, 0.001, 0.01");
  expect("accuracy", "gamma = 0.01", "gamma: has no gamma");
  expect("solution_rank", "layer = \"layers.0\"", "layer: is of no layer");
  expect("auroc", "detector = \"knn\"", "detector: 'knn' is not among measure.detectors, neco");
  expect("accuracy", "detector = \"neco\"", "detector: is of no detector");
  expect("auroc", "ood = \"svhn\"", "ood: 'svhn' is not among data.ood, ");
  expect("accuracy", "bias = false", "bias: is for readings of solution_rank");
  expect("accuracy", "split = \"validation\"", "split: must be train or test");
  expect("solution_rank_at_equal_accuracy", "gamma = 0.01", "gamma: is made of the metrics");
  const auto none = refusal(
      "[sweep]\nseed = [1, 2]\n[[claim]]\ndirection = \"lower\"\nat = { seed = 1 }\n"
      "against = { seed = 2 }\nreading = \"alignment\"\nlayer = \"layers.7\"\n",
      {"measure.names=[\"alignment\"]"});
  EXPECT_NE(none.find("layer: 'layers.7' is none of the model's: layers.0, layers.1, layers.2"),
            std::string::npos)
      << none;
}

constexpr auto kTuning = "tune.samples = 100\ntune.seed = 100\n[sweep]\nseed = [1, 2]\n";

TEST_F(BadRecipe, OfATunedCaseIsRefusedBeforeAnythingRuns) {
  const auto expect = [&](const std::string& tune, const std::string& message) {
    for (const auto& flags : {std::vector<std::string>{}, {"--tune"}}) {
      const auto error = refusal("[tune]\n" + tune + "[sweep]\nseed = [1, 2]\n", flags);
      EXPECT_NE(error.find(message), std::string::npos) << error;
    }
  };
  const std::string grid = "train.lr = [0.1, 0.5]\n";
  expect("train.lr = []\nsamples = 100\nseed = 100\n", "must be a list of at least two numbers");
  expect(grid + "samples = 100\nseed = 2\n", "must not be among the seeds of the table, [1,2]");
  expect(grid + "samples = 10000\nseed = 100\n",
         "run 'seed=100,lr=0.1': data.validation_samples: must be below the 10000 training "
         "images, got 10000");
  expect("train.lr = [0.1, -1]\nsamples = 100\nseed = 100\n", "train.lr: must be");
  expect("train.learning = [0.1, 1]\nsamples = 100\nseed = 100\n",
         "train.learning: no such setting");
  const auto both =
      refusal("[tune]\n" + grid + "samples = 100\nseed = 100\n[sweep]\ntrain.lr = [1, 2]\n");
  EXPECT_NE(both.find("train.lr: is both swept over and tuned"), std::string::npos) << both;
  const auto none = refusal(kTwoSeeds, {"--tune"});
  EXPECT_NE(none.find("tiny: --tune: has no case that says what to tune"), std::string::npos)
      << none;
}

TEST_F(BadRecipe, IsAlsoAWrongCommand) {
  EXPECT_NE(refusal("", {"--only", "nobody"}).find("--only: no run of tiny is called 'nobody'"),
            std::string::npos);
  EXPECT_NE(refusal("", {"--shard", "3/2"}).find("--shard: must be i/n"), std::string::npos);
  EXPECT_NE(refusal("", {"train.lr"}).find("must be key=value"), std::string::npos);
  EXPECT_NE(refusal(kTwoSeeds, {"seed=3"}).find("seed: is swept over; change its list"),
            std::string::npos);
  const auto none = run_tool({"sweep", "nothing"});
  EXPECT_NE(none.err.find("no recipe named 'nothing'"), std::string::npos) << none.err;
  EXPECT_EQ(run_tool({"sweep"}).exit_code, 2);
}

TEST_F(SweepVerb, TrainsWhatIsMissingAndNothingTwice) {
  const auto first = run_tool(words(kTwoSeeds, "out"));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, "tiny: 2 runs, 0 done before, 2 now\n");
  const auto metadata = whole_file(folder_ / "out/seed=1/metadata.json");
  const auto more = run_tool(words(kTwoSeeds, "out", {"sweep.seed=[2,3]"}));
  ASSERT_EQ(more.exit_code, 0) << more.err;
  EXPECT_EQ(more.out, "tiny: 2 runs, 1 done before, 1 now\n");
  EXPECT_EQ(whole_file(folder_ / "out/seed=1/metadata.json"), metadata);

  // Kept readings count as finished, wherever they come from.
  const auto harvest =
      run_tool({"sweep", "--harvest", "--output", folder_ / "out", "--readings", folder_ / "kept"});
  EXPECT_EQ(harvest.exit_code, 0) << harvest.err;
  EXPECT_NE(harvest.out.find("3 finished runs"), std::string::npos) << harvest.out;
  EXPECT_NE(harvest.out.find("3 new"), std::string::npos) << harvest.out;
  for (const auto& file : fs::directory_iterator(folder_.path() / "kept")) {
    EXPECT_LT(fs::file_size(file), 60'000U);
    EXPECT_NE(load_kept(file).metadata.at("command").get<std::string>().find(" --only seed="),
              std::string::npos);
  }
  const auto elsewhere = run_tool(words(kTwoSeeds, "elsewhere"));
  EXPECT_EQ(elsewhere.out, "tiny: 2 runs, 2 done before, 0 now\n");
  EXPECT_FALSE(fs::exists(folder_ / "elsewhere/seed=1"));

  const auto other = run_tool(words(kTwoSeeds, "out", {"train.lr=0.3"}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("plans another run of this name (train.lr unset instead of 0.3)"),
            std::string::npos)
      << other.err;
}

TEST_F(SweepVerb, NamesTheRunThatFailsAndFinishesTheOthers) {
  const auto result = run_tool(words("[sweep]\ntrain.lr = [0.1, 1e30]\n", "out"));
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_NE(result.err.find("failed: lr=1e+30: kelvin "), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "tiny: 2 runs, 0 done before, 1 now, 1 failed\n");
  EXPECT_EQ(load_status(folder_ / "out/lr=0.1"), RunStatus::finished);
}

// A case beside the strict one, whose rates are 0.1 and one at which training diverges.
std::string tuned_cases(const std::string& grid) {
  return "[[case]]\nname = \"strict\"\ntrain.lr = 0.1\n[[case]]\nname = \"tuned\"\n"
         "tune.train.lr = " +
         grid + "\n" + kTuning;
}

TEST_F(SweepVerb, ChoosesARateByTrialsAndThenTrainsWithIt) {
  const auto recipe = tuned_cases("[0.1, 1e30]");
  const auto early = run_tool(words(recipe, "out"));
  ASSERT_EQ(early.exit_code, 0) << early.err;
  EXPECT_EQ(early.out, "tiny: 2 runs, 0 done before, 2 now\n");
  EXPECT_NE(early.err.find("tiny: no train.lr is chosen yet for tuned, which is done by: kelvin "
                           "sweep "),
            std::string::npos)
      << early.err;
  EXPECT_TRUE(early.err.ends_with(" --tune\n")) << early.err;

  // A failed trial is a result, and is not made again.
  const auto tuned = run_tool(words(recipe, "out", {"--tune", "-o", "csv"}));
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_TRUE(tuned.out.starts_with("tiny: 2 trials, 0 done before, 2 now\n")) << tuned.out;
  EXPECT_NE(tuned.out.find(",chosen\n"), std::string::npos) << tuned.out;
  EXPECT_NE(tuned.out.find("tuned,train.lr,1e+30,,\"kelvin train: "), std::string::npos)
      << tuned.out;
  EXPECT_EQ(load_status(folder_ / "out-tuning/tuned,seed=100,lr=0.1"), RunStatus::finished);
  EXPECT_EQ(run_tool(words(recipe, "out", {"--tune", "-o", "csv"})).out.substr(0, 40),
            "tiny: 2 trials, 2 done before, 0 now\ntun");

  // The rate of the strict case, so that nothing is left to train.
  const auto whole = run_tool(words(recipe, "out"));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_EQ(whole.out, "tiny: 4 runs, 2 done before, 0 now, 2 shared with earlier ones\n");

  // The choice is that of kept readings as well, which hold the failure.
  const auto harvest = run_tool(
      {"sweep", "--harvest", "--output", folder_ / "out-tuning", "--readings", folder_ / "kept"});
  EXPECT_EQ(harvest.exit_code, 0) << harvest.err;
  EXPECT_NE(harvest.out.find("2 finished runs"), std::string::npos) << harvest.out;
  const auto elsewhere = run_tool(words(recipe, "elsewhere", {"--only", "tuned,*"}));
  EXPECT_EQ(elsewhere.out, "tiny: 2 runs, 0 done before, 2 now\n") << elsewhere.err;
  EXPECT_TRUE(fs::exists(folder_ / "elsewhere/tuned,seed=1,lr=0.1/readings.jsonl"));
  // Begun under that name, it is not trained a second time under the other.
  EXPECT_EQ(run_tool(words(recipe, "elsewhere")).out,
            "tiny: 4 runs, 2 done before, 0 now, 2 shared with earlier ones\n");
}

TEST_F(SweepVerb, ForgetsAChoiceWhenTheTuningChanges) {
  const auto tuned = run_tool(words(tuned_cases("[0.1, 0.2]"), "out", {"--tune"}));
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const auto undecided = [&](const std::string& recipe, const std::string& setting = "device=cpu") {
    const auto result = run_tool(words(recipe, "out", {"--dry-run", setting}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.err.find("no train.lr is chosen yet for tuned,") != std::string::npos;
  };
  EXPECT_FALSE(undecided(tuned_cases("[0.1, 0.2]")));
  EXPECT_TRUE(undecided(tuned_cases("[0.1, 0.2, 0.3]")));
  auto fewer = tuned_cases("[0.1, 0.2]");
  fewer.replace(fewer.find("samples = 100"), 13, "samples = 101");
  EXPECT_TRUE(undecided(fewer));
  EXPECT_TRUE(undecided(tuned_cases("[0.1, 0.2]"), "train.momentum=0.5"));
}

TEST_F(SweepVerb, SaysWhenNoRateWillDo) {
  const auto recipe = tuned_cases("[1e29, 1e30]");
  ASSERT_EQ(run_tool(words(recipe, "out", {"--tune"})).exit_code, 0);
  const auto result = run_tool(words(recipe, "out", {"--only", "tuned,*"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "tiny: training fails with every train.lr for tuned\n");
  EXPECT_EQ(result.out, "");
}

TEST_F(SweepVerb, TunesAndTrainsInOneQueue) {
  const auto path = recipe(tuned_cases("[0.1, 1e30]"));
  write_file_atomically(folder_ / "queue.txt",
                        path + " --tune\n" + path + " --only tuned,*  # with what was chosen\n");
  const auto result = run_tool({"sweep", "--queue", folder_ / "queue.txt", "--output",
                                folder_ / "out", "--readings", folder_ / "kept", "-q"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.out.ends_with("tiny: 2 runs, 0 done before, 2 now\n")) << result.out;
  EXPECT_EQ(result.err.find("no train.lr"), std::string::npos) << result.err;
}

TEST_F(SweepVerb, ListsWhatItWouldDo) {
  const auto result = run_tool(words(kTwoSeeds, "out", {"--dry-run", "-o", "csv"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.find("recipe,run,state,minutes,memory,disk\ntiny,seed=1,to train,"), 0U)
      << result.out;
  auto for_people = words(kTwoSeeds, "out", {"--dry-run", "--jobs", "1"});
  std::erase(for_people, "--quiet");
  const auto text = run_tool(for_people);
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_TRUE(text.out.starts_with("recipe  run     state     ")) << text.out;
  EXPECT_NE(text.out.find(" time "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find(" s "), std::string::npos) << text.out;
  EXPECT_NE(text.err.find(" with 1 run at once, if the machine stays as busy as now\n"),
            std::string::npos)
      << text.err;
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(SweepVerb, WorksThroughAQueue) {
  const auto path = recipe(kTwoSeeds);
  write_file_atomically(folder_ / "queue.txt", "# first\n" + path + " --only seed=1  # one\n\n" +
                                                   path + " sweep.seed=[1,4]\n");
  const auto result = run_tool({"sweep", "--queue", folder_ / "queue.txt", "--output",
                                folder_ / "out", "--readings", folder_ / "kept", "-q"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "tiny: 1 runs, 0 done before, 1 now\ntiny: 2 runs, 1 done before, 1 now\n");
  EXPECT_TRUE(fs::exists(folder_ / "out/tiny/seed=4/readings.jsonl"));
}

TEST_F(SweepVerb, TrainsRunsThatRecipesOfAQueueShareOnce) {
  const auto path = recipe(kTwoSeeds);
  write_file_atomically(folder_ / "other.toml", std::string(kTiny) +
                                                    "[[case]]\nname = \"again\"\nseed = 2\n"
                                                    "[[case]]\nname = \"new\"\nseed = 3\n");
  write_file_atomically(folder_ / "queue.txt", path + "\n" + (folder_ / "other.toml") + "\n");
  const std::vector<std::string> words = {
      "sweep",         "--queue",    folder_ / "queue.txt", "--output",
      folder_ / "out", "--readings", folder_ / "kept",      "-q"};
  auto dry = words;
  dry.insert(dry.end(), {"--dry-run", "-o", "csv"});
  const auto planned = run_tool(dry);
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_NE(planned.out.find("other,again,shared,"), std::string::npos) << planned.out;
  EXPECT_NE(planned.out.find("other,new,to train,"), std::string::npos) << planned.out;
  const auto result = run_tool(words);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            "tiny: 2 runs, 0 done before, 2 now\n"
            "other: 2 runs, 0 done before, 1 now, 1 shared with earlier ones\n");
  EXPECT_TRUE(fs::exists(folder_ / "out/tiny/seed=2/readings.jsonl"));
  EXPECT_FALSE(fs::exists(folder_ / "out/other/again"));
}

void expect_same_sweep(const fs::path& actual, const fs::path& expected) {
  const auto runs = find_runs(expected);
  EXPECT_EQ(find_runs(actual).size(), runs.size());
  for (const auto& run : runs) expect_same_run(actual / run.filename(), run);
}

constexpr auto kTwelve = "[sweep]\nseed = [1, 2, 3]\ntrain.temperature = [1, 3, 10, 30]\n";

TEST(SweepsSlow, KilledAtRandomMomentsGoOnToTheSameReadings) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "tiny.toml", std::string(kTiny) + kTwelve);
  const auto words = [&](const std::string& output) -> std::vector<std::string> {
    return {"sweep", folder / "tiny.toml", "--output", folder / output, "--jobs", "2", "-q"};
  };
  const auto whole = run_tool(words("whole"));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const auto seed = std::random_device{}();
  std::mt19937 random(seed);
  for (int i = 0; i < 10; ++i) {
    StartedCommand command(tool_words(words("killed")));
    const auto moment = std::uniform_real_distribution(0.0, whole.seconds / 4)(random);
    std::this_thread::sleep_for(std::chrono::duration<double>(moment));
    command.send(SIGKILL);
    command.wait();
  }
  const auto last = run_tool(words("killed"));
  ASSERT_EQ(last.exit_code, 0) << "seed " << seed << ": " << last.err;
  expect_same_sweep(folder / "killed", folder / "whole");
  // Nothing was trained twice: every run that went on did so from where it was.
  for (const auto& run : find_runs(folder / "killed")) {
    const auto metadata = load_run(run).metadata;
    if (!metadata.contains("resumed")) continue;
    int64_t step = 0;
    for (const auto& resumption : metadata.at("resumed")) {
      EXPECT_GE(resumption.at("step"), step) << run;
      step = resumption.at("step");
    }
  }
}

TEST(SweepsSlow, OfTwoShardsEqualOne) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "tiny.toml", std::string(kTiny) + kTwelve);
  const auto words = [&](const std::string& output, const std::string& shard) {
    return tool_words({"sweep", folder / "tiny.toml", "--output", folder / output, "--jobs", "1",
                       "--shard", shard, "-q"});
  };
  StartedCommand first(words("shared", "1/2"));
  StartedCommand second(words("shared", "2/2"));
  const auto one = first.wait();
  const auto other = second.wait();
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_EQ(one.out, "tiny: 6 runs, 0 done before, 6 now\n");
  EXPECT_EQ(other.out, "tiny: 6 runs, 0 done before, 6 now\n");
  ASSERT_EQ(StartedCommand(words("whole", "1/1")).wait().exit_code, 0);
  expect_same_sweep(folder / "shared", folder / "whole");
}

}  // namespace kelvin::sweep_test
