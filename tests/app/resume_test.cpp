#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <thread>

#include "kelvin/core/files.h"
#include "tests/support/damaged_runs.h"
#include "tests/support/fake_run.h"
#include "tests/support/same_run.h"

namespace kelvin::resume_test {

namespace fs = std::filesystem;

// A second or two of training, with checkpoints within the epochs, dropout and augmentation.
// A training on few images that saves and measures often.
std::vector<std::string> train_words(const std::string& output, const std::string& model,
                                     const std::vector<std::string>& more) {
  std::vector<std::string> words = {"train",
                                    "--model",
                                    model,
                                    "--dataset",
                                    "glyphs10",
                                    "-b",
                                    "50",
                                    "--threads",
                                    "2",
                                    "--augment",
                                    "crop-flip",
                                    "--quiet",
                                    "--output",
                                    output,
                                    "data.test_samples=200",
                                    "measure.epoch_samples=50",
                                    "measure.train_samples=100",
                                    "measure.steps_per_decade=3"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<std::string> short_run(const std::string& output) {
  return train_words(output, "mlp",
                     {"--epochs", "4", "--checkpoint-steps", "7", "model.width=256",
                      "model.depth=4", "model.dropout=0.1", "data.train_samples=1000"});
}

int lines_of(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

// One run that nothing disturbed.
class ResumeVerb : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    kept_folder = new TemporaryFolder;
    const auto result = run_tool(short_run(undisturbed()));
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  static void TearDownTestSuite() { delete kept_folder; }

  static std::string undisturbed() { return *kept_folder / "undisturbed"; }

  // Stops a run by `signal` once its metrics have so many lines.
  static CommandResult stopped_run(const std::string& run, int signal, int lines) {
    StartedCommand command(tool_words(short_run(run)));
    for (int i = 0; i < 3000 && lines_of(whole_file(run + "/metrics.jsonl")) < lines; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    command.send(signal);
    return command.wait();
  }

  static inline TemporaryFolder* kept_folder = nullptr;
};

TEST_F(ResumeVerb, GoesOnToTheSameBitsAfterAnInterrupt) {
  const TemporaryFolder folder;
  const auto stopped = stopped_run(folder / "run", SIGTERM, 4);
  EXPECT_EQ(stopped.exit_code, 143) << stopped.err;
  EXPECT_EQ(stopped.err,
            "kelvin train: stopped; go on with: kelvin resume " + (folder / "run") + "\n");
  ASSERT_EQ(load_run(folder / "run").status, RunStatus::stopped);
  const auto result = run_tool({"resume", folder / "run", "--quiet"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("solution rank"), std::string::npos) << result.out;
  expect_same_run(folder / "run", undisturbed());
  EXPECT_EQ(load_run(folder / "run").metadata.at("resumed").size(), 1U);
}

TEST_F(ResumeVerb, GoesOnToTheSameBitsHoweverOftenItIsKilled) {
  const TemporaryFolder folder;
  const auto last = [&] {
    std::error_code none;
    return fs::read_symlink(folder / "run/checkpoints/last", none).string();
  };
  std::mt19937 random(std::random_device{}());
  int kills = 0;
  for (; kills < 5; ++kills) {
    const auto before = last();
    StartedCommand command(
        tool_words(kills > 0 ? std::vector<std::string>{"resume", folder / "run", "--quiet"}
                             : short_run(folder / "run")));
    // Some time after it has saved something new.
    for (int i = 0; i < 30000 && last() == before; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 100));
    command.send(SIGKILL);
    if (command.wait().exit_code == 0) break;
  }
  EXPECT_GE(kills, 2);
  if (load_run(folder / "run").status != RunStatus::finished) {
    const auto result = run_tool({"resume", folder / "run", "--quiet"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  expect_same_run(folder / "run", undisturbed());
  EXPECT_GT(load_run(folder / "run").metadata.at("resumed").back().at("step"), 0);
}

// A network with everything that has a state: convolutions, batch normalisation, momentum, averaged
// weights, augmented images, measuring in between.
std::vector<std::string> stateful_run(const std::string& output) {
  return train_words(output, "resnet10",
                     {"--epochs", "3", "--checkpoint-steps", "4", "model.width=0.25",
                      "model.stem_stride=2", "train.ema=0.9", "data.train_samples=600"});
}

// At moments from the start of the process to its end; each run is killed once and goes on.
TEST(KilledRunsSlow, GoOnToTheSameBitsFromTwentyRandomMoments) {
  constexpr int kRuns = 20;
  const TemporaryFolder folder;
  const auto start = std::chrono::steady_clock::now();
  const auto whole = run_tool(stateful_run(folder / "whole"));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const auto seed = std::random_device{}();
  std::mt19937 random(seed);
  int killed = 0;
  for (int i = 0; i < kRuns; ++i) {
    const auto run = folder / ("run" + std::to_string(i));
    const auto moment = std::uniform_real_distribution(0.0, seconds.count())(random);
    StartedCommand command(tool_words(stateful_run(run)));
    std::this_thread::sleep_for(std::chrono::duration<double>(moment));
    command.send(SIGKILL);
    const bool is_killed = command.wait().exit_code != 0;
    killed += is_killed ? 1 : 0;
    // It may have been done with everything but leaving.
    const bool is_finished = fs::exists(run) && load_run(run).status == RunStatus::finished;
    if (!is_finished) {
      // Before there is a folder nothing can be lost.
      const auto again =
          fs::exists(run) ? run_tool({"resume", run, "--quiet"}) : run_tool(stateful_run(run));
      ASSERT_EQ(again.exit_code, 0)
          << "killed after " << moment << " s, seed " << seed << ": " << again.err;
    }
    expect_same_run(run, folder / "whole");
    ASSERT_FALSE(testing::Test::HasFailure()) << "killed after " << moment << " s, seed " << seed;
    fs::remove_all(run);
  }
  EXPECT_GE(killed, kRuns / 2);
}

TEST_F(ResumeVerb, RefusesOtherThreadsUnlessInexact) {
  const TemporaryFolder folder;
  stopped_run(folder / "run", SIGKILL, 3);
  const auto metrics = whole_file(folder / "run/metrics.jsonl");
  const auto refused = run_tool({"resume", folder / "run", "--threads", "1"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.err, "kelvin resume: " + (folder / "run") +
                             ": would not go on to the same bits: threads 1 instead of 2; "
                             "--inexact does it nevertheless\n");
  EXPECT_EQ(whole_file(folder / "run/metrics.jsonl"), metrics);
  const auto inexact = run_tool({"resume", folder / "run", "--threads", "1", "--inexact", "-q"});
  EXPECT_EQ(inexact.exit_code, 0) << inexact.err;
  EXPECT_EQ(load_run(folder / "run").status, RunStatus::finished);
}

// As a shell's loop that resumes until all is done wants it.
TEST_F(ResumeVerb, ChangesNothingInARunThatIsFinishedAndShowsIt) {
  const auto metadata = whole_file(undisturbed() + "/metadata.json");
  const auto finished = run_tool({"resume", undisturbed()});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.err, "kelvin resume: " + undisturbed() + ": is finished; nothing to resume\n");
  EXPECT_NE(finished.out.find("solution rank"), std::string::npos) << finished.out;
  EXPECT_EQ(whole_file(undisturbed() + "/metadata.json"), metadata);
}

TEST_F(ResumeVerb, RefusesWhatIsNoRun) {
  const TemporaryFolder folder;
  const auto none = run_tool({"resume", folder.path().string()});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("is not a run folder"), std::string::npos) << none.err;
  EXPECT_EQ(run_tool({"resume", folder / "none"}).err,
            "kelvin resume: " + (folder / "none") + ": no such folder\n");
}

TEST_F(ResumeVerb, RefusesARunThatSomebodyElseIsAtWorkIn) {
  const TemporaryFolder folder;
  StartedCommand command(tool_words(short_run(folder / "run")));
  for (int i = 0; i < 3000 && whole_file(folder / "run/metrics.jsonl").empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const auto second = run_tool({"resume", folder / "run"});
  EXPECT_EQ(second.exit_code, 2) << second.err;
  EXPECT_NE(second.err.find("another process"), std::string::npos) << second.err;
  EXPECT_EQ(command.wait().exit_code, 0);
  expect_same_run(folder / "run", undisturbed());
}

// A file system of its own, which the test fills.
class SmallDisk {
 public:
  explicit SmallDisk(const fs::path& path) : path_(path) {
    fs::create_directories(path);
    is_mounted_ = ::mount("none", path.c_str(), "tmpfs", 0, "size=24m") == 0;
  }
  ~SmallDisk() {
    if (is_mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool is_mounted() const { return is_mounted_; }

 private:
  fs::path path_;
  bool is_mounted_ = false;
};

TEST_F(ResumeVerb, GoesOnAfterTheDiskWasFull) {
  const TemporaryFolder folder;
  const SmallDisk disk(folder.path() / "disk");
  if (!disk.is_mounted()) GTEST_SKIP() << "needs the right to mount a file system";
  const auto run = folder / "disk/run";
  const auto stopped = stopped_run(run, SIGTERM, 3);
  ASSERT_EQ(stopped.exit_code, 143) << stopped.err;
  // Whatever is left goes into one file.
  const auto space = fs::space(folder.path() / "disk").available;
  write_file_atomically(folder / "disk/filler", std::string(space - 20000, 'x'));
  const auto last = fs::read_symlink(run + "/checkpoints/last");
  const auto full = run_tool({"resume", run, "--quiet"});
  EXPECT_EQ(full.exit_code, 2);
  EXPECT_EQ(lines_of(full.err), 1) << full.err;
  EXPECT_NE(full.err.find("No space left on device"), std::string::npos) << full.err;
  EXPECT_EQ(fs::read_symlink(run + "/checkpoints/last"), last);
  fs::remove(folder / "disk/filler");
  const auto result = run_tool({"resume", run, "--quiet"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_same_run(run, undisturbed());
}

// Rights mean nothing to root: the tool runs as somebody else.
std::vector<std::string> without_privileges(const std::vector<std::string>& arguments) {
  auto words = tool_words(arguments);
  if (::geteuid() == 0) {
    const std::vector<std::string> prefix = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
                                             "--clear-groups"};
    words.insert(words.begin(), prefix.begin(), prefix.end());
  }
  return words;
}

void set_writable(const std::string& run, bool is_writable) {
  for (const auto& folder : {run, run + "/checkpoints"}) {
    fs::permissions(folder, fs::perms::owner_write,
                    is_writable ? fs::perm_options::add : fs::perm_options::remove);
  }
}

TEST_F(ResumeVerb, GoesOnAfterTheFolderWasReadOnly) {
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms::all);
  const auto run = folder / "run";
  StartedCommand command(without_privileges(short_run(run)));
  for (int i = 0; i < 30000 && !fs::exists(run + "/checkpoints/last"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  set_writable(run, false);
  const auto ended = command.wait();
  const auto last = fs::read_symlink(run + "/checkpoints/last");
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(lines_of(ended.err), 1) << ended.err;
  EXPECT_NE(ended.err.find("Permission denied"), std::string::npos) << ended.err;
  const auto refused = StartedCommand(without_privileges({"resume", run, "--quiet"})).wait();
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(lines_of(refused.err), 1) << refused.err;
  EXPECT_EQ(fs::read_symlink(run + "/checkpoints/last"), last);
  set_writable(run, true);
  const auto result = StartedCommand(without_privileges({"resume", run, "--quiet"})).wait();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_same_run(run, undisturbed());
}

TEST_F(ResumeVerb, RefusesAnEditedConfigUnlessInexact) {
  const TemporaryFolder folder;
  stopped_run(folder / "run", SIGTERM, 4);
  const auto path = folder / "run/config.toml";
  auto config = Config::load(path);
  config.apply_override("train.temperature=9");
  write_file_atomically(path, config.to_toml());
  const auto before = contents_of(folder / "run");
  const auto refused = run_tool({"resume", folder / "run", "-q"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.err, "kelvin resume: " + path +
                             ": was changed since the run started: train.temperature 9.0 instead "
                             "of 1.0; change it back, or go on with --inexact, which writes the "
                             "change down\n");
  EXPECT_TRUE(contents_of(folder / "run") == before);
  const auto inexact = run_tool({"resume", folder / "run", "-q", "--inexact"});
  EXPECT_EQ(inexact.exit_code, 0) << inexact.err;
  EXPECT_TRUE(inexact.err.starts_with(
      "warning: goes on with other settings: train.temperature 9.0 instead of 1.0\n"))
      << inexact.err;
  ASSERT_EQ(changes_of(load_run(folder / "run")).size(), 1U);
  EXPECT_EQ(changes_of(load_run(folder / "run"))[0].key, "train.temperature");
}

// As cp -rL copies it.
TEST_F(ResumeVerb, GoesOnWithACopyWhoseLinksBecameFolders) {
  const TemporaryFolder folder;
  stopped_run(folder / "run", SIGTERM, 4);
  fs::copy(folder / "run", folder / "copy", fs::copy_options::recursive);
  ASSERT_FALSE(fs::is_symlink(folder / "copy/checkpoints/last"));
  const auto result = run_tool({"resume", folder / "copy", "-q"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_same_run(folder / "copy", undisturbed());
}

}  // namespace kelvin::resume_test
