#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "kelvin/core/text.h"
#include "tests/support/all_commands.h"
#include "tests/support/command.h"

namespace kelvin::completion_test {

namespace fs = std::filesystem;

struct Reply {
  std::string paths = {};
  std::map<std::string, std::string> meanings = {};  // by word

  Words words() const {
    Words all;
    for (const auto& [word, meaning] : meanings) all.push_back(word);
    return all;
  }
};

// What the last of the words may become.
Reply completed(const Words& words) {
  const auto result = run_tool(joined({"completion", "bash", "--"}, words));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  auto lines = split(result.out, '\n');
  Reply reply{.paths = lines.front()};
  lines.erase(lines.begin());
  for (const auto& line : lines) {
    const auto tab = line.find('\t');
    if (tab != std::string::npos) reply.meanings[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return reply;
}

TEST(Completion, KnowsVerbsJobsFlagsAndValues) {
  const std::vector<std::pair<Words, Words>> cases = {
      {{"tr"}, {"train", "truncate"}},
      {{"--v"}, {"--version"}},
      {{"theory", "fi"}, {"fig6"}},
      {{"theory", "fig6", "--sc"}, {"--scales"}},
      {{"data", "-q", "fe"}, {"fetch"}},
      {{"bench", ""}, {"train"}},  // and no job of our own
      {{"train", "--mod"}, {"--model", "--model-ema-decay"}},
      {{"train", "--model", "resnet5"}, {"resnet50", "resnet56"}},
      {{"train", "--model=resnet5"}, {"--model=resnet50", "--model=resnet56"}},
      {{"train", "--reference-ops", "--prec"}, {"--precision"}},
      {{"train", "--precision", ""}, {"bf16", "fp32"}},
      {{"train", "--plain"}, {}},  // a former name
      {{"measure", "--lr"}, {}},   // of another verb
      {{"train", "--ood", "svhn,mn"}, {"svhn,mnist"}},
      {{"train", "--ood=svhn,s"}, {}},  // is there already
      {{"measure", "x.npz", "--measures", "accuracy,calib"}, {"accuracy,calibration"}},
      {{"ood", "run", "--detectors", "al"}, {"all"}},
      {{"data", "fetch", "svhn", "mni"}, {"mnist"}},
      {{"model", "show", "resnet5", "re"}, {}},
      {{"model", "show", "resnet5"}, {"resnet50", "resnet56"}},
      {{"list", "mea"}, {"measures"}},
      {{"list", "--quiet", "mea"}, {"measures"}},
      {{"list", "--", "mea"}, {"measures"}},
      {{"list", "-o", "js"}, {"json", "jsonl"}},
      {{"list", "--", "-o"}, {}},
      {{"reproduce", "al"}, {"all"}},
      {{"sweep", "table1_v"}, {}},
      {{"man", "cal"}, {"calibrate"}},
      {{"xyzzy", ""}, {}},
  };
  for (const auto& [words, expected] : cases) {
    EXPECT_EQ(completed(words).words(), expected) << join(words, " ");
  }
  EXPECT_EQ(completed({"list", "models", "--threads"}).meanings.at("--threads"),
            "threads to compute with (default: $OMP_NUM_THREADS, else all cores)");
  EXPECT_EQ(completed({"demo", "--recipe", ""}).words(),
            (Words{"demo", "demo_tuned", "trade_off"}));
}

TEST(Completion, AsksForPathsWhereTheyAreMeant) {
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"measure", ""}, "files"},
      {{"measure", "train.lr=3", ""}, "files"},  // a setting is no input
      {{"measure", "run", ""}, ""},
      {{"train", "--config", ""}, "files"},
      {{"train", "--config=re"}, "files"},
      {{"train", "--output", ""}, "folders"},
      {{"train", "--lr", ""}, ""},
      {{"runs", ""}, "folders"},
      {{"compare", "a", ""}, "folders"},
      {{"report", "a", "b", ""}, "folders"},
      {{"attention", "fit", "a", ""}, "files"},
      {{"sweep", "./my"}, "files"},
      {{"demo", "--data-dir", ""}, "folders"},
  };
  for (const auto& [words, expected] : cases) {
    EXPECT_EQ(completed(words).paths, expected) << join(words, " ");
  }
}

// Flags with the name of their values, of "  -o, --format FORMAT  how to print".
std::map<std::string, std::string> flags_in(const std::string& help) {
  std::map<std::string, std::string> flags;
  const std::regex line("\n  (?:-\\w, )?(--[a-z-]+) ?(\\S*)");
  for (std::sregex_iterator match(help.begin(), help.end(), line), end; match != end; ++match) {
    flags[(*match)[1]] = (*match)[2];
  }
  return flags;
}

std::string on_one_line(const std::string& text) {
  return std::regex_replace(text, std::regex("\\s+"), " ");
}

TEST(Completion, OffersWhatTheHelpOfEachVerbAndJobShows) {
  const auto names = whole_file(KELVIN_BINARY_DIR "/catalog.json") +
                     run_tool({"list", "recipes", "-o", "json"}).out;
  const std::string named = " NAME A,B FORMAT SPLIT ";  // values that may have names
  std::set<std::string> seen;
  for (const auto& command : all_commands()) {
    const auto help = on_one_line(run_tool(joined(command, {"--help"})).out);
    const auto flags = completed(joined(command, {"-"}));
    const auto shown = flags_in(run_tool(joined(command, {"--help"}), {"COLUMNS=500"}).out);
    EXPECT_EQ(flags.meanings.size(), shown.size()) << join(command, " ");
    for (const auto& [flag, meaning] : flags.meanings) {
      EXPECT_TRUE(shown.contains(flag)) << join(command, " ") << " " << flag;
      EXPECT_NE(help.find(meaning), std::string::npos) << join(command, " ") << " " << flag;
      const auto type = shown.contains(flag) ? shown.at(flag) : "";
      if (named.find(" " + type + " ") == std::string::npos) continue;
      if (!seen.insert(flag + meaning).second) continue;
      for (const auto& value : completed(joined(command, {flag + "="})).words()) {
        const auto word = value.substr(flag.size() + 1);
        const bool is_known = meaning.find(word) != std::string::npos ||
                              names.find("\"" + word + "\"") != std::string::npos ||
                              flag == "--scale";
        EXPECT_TRUE(is_known) << join(command, " ") << " " << value;
      }
    }
  }
}

// The library is asked what there is, by a value that there is not.
TEST(CompletionSlow, OffersTheValuesThatAreAccepted) {
  const Words train = {"train", "--model", "mlp", "--dataset", "glyphs10", "--dry-run"};
  for (const char* flag : {"--augment", "--temperature-schedule", "--sched", "--lr-scale-with-t",
                           "--opt", "--precision", "--device"}) {
    const auto refused = run_tool(joined(train, {flag, "xyzzy"}));
    EXPECT_EQ(refused.exit_code, 2) << flag;
    const auto words = completed({"train", flag, ""}).words();
    EXPECT_GE(words.size(), 2U) << flag;
    for (const auto& word : words) {
      EXPECT_NE(refused.err.find(word), std::string::npos) << word << ": " << refused.err;
    }
  }
}

TEST(Completion, DoesNotLoadLibTorchAndTakesAMoment) {
  const auto result =
      run_tool({"completion", "bash", "--", "train", "--model", ""}, {"LD_DEBUG=libs"});
  EXPECT_NE(result.err.find("libkelvin_base"), std::string::npos);
  EXPECT_EQ(result.err.find("libtorch"), std::string::npos);
  EXPECT_LT(run_tool({"completion", "bash", "--", "train", "--model", ""}).seconds, 0.5);
}

TEST(Completion, RefusesOtherShells) {
  const auto result = run_tool({"completion", "tcsh"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "kelvin completion: SHELL: must be bash, zsh or fish, got 'tcsh'\n");
}

// A shell with the script in a folder of its own, in which somebody types.
class Typing : public testing::Test {
 protected:
  // `keys` with TAB for the words' ends, into a shell that was started so.
  void type(const std::string& keys, const Words& shell, const Words& environment) {
    const auto typed = "cd " + folder_.path().string() + "\n" + keys + "\nexit\n";
    auto words =
        joined({"/usr/bin/python3", KELVIN_SOURCE_DIR "/tests/support/type_into.py", typed}, shell);
    auto variables = joined(environment, {"TERM=dumb", "HOME=" + folder_.path().string(),
                                          "PATH=" KELVIN_BINARY_DIR ":/usr/bin:/bin"});
    screen_ = StartedCommand(words, variables).wait().out;
  }
  std::string written(const std::string& file) const { return whole_file(folder_ / file); }

  static std::string script(const std::string& shell) {
    return run_tool({"completion", shell}).out;
  }

  void write(const std::string& file, const std::string& text) {
    std::ofstream(folder_ / file) << text;
  }

  // In files, because what is on the screen has been typed in part.
  void expect_completed_words() {
    EXPECT_EQ(written("verb"), "name,") << screen_;
    EXPECT_EQ(written("job"), "--force\n") << screen_;
    EXPECT_EQ(written("value"), "run.toml:\n") << screen_;
  }

  TemporaryFolder folder_;
  std::string screen_;
};

// Each line says something only if all its words were completed.
const std::string kTyped =
    "kelvin li\tlos\t-o cs\t| head -c 5 >verb\n"
    "kelvin da\tfet\t--he\t| grep -o -- --force | head -1 >job\n"
    "kelvin tra\t--dry\t--conf\trun.\t2>&1 | grep -o run.toml: >value\n";

TEST_F(Typing, IntoBashIsCompleted) {
  write("rc", script("bash") + "PS1='ready> '\n");
  write("run.toml", "no TOML\n");
  type(kTyped + "kelvin list --format=cs\t losses | head -c 5 >equals\n",
       {"/usr/bin/bash", "--noprofile", "--rcfile", folder_ / "rc", "-i"}, {});
  expect_completed_words();
  EXPECT_EQ(written("equals"), "name,") << screen_;
}

TEST_F(Typing, IntoZshIsCompleted) {
  if (!fs::exists("/usr/bin/zsh")) GTEST_SKIP() << "no zsh";
  write(".zshrc", "autoload -U compinit && compinit -D -u\n" + script("zsh") + "PS1='ready> '\n");
  write("run.toml", "no TOML\n");
  type(kTyped + "kelvin list --format=cs\t losses | head -c 5 >equals\n", {"/usr/bin/zsh", "-i"},
       {"ZDOTDIR=" + folder_.path().string()});
  expect_completed_words();
  EXPECT_EQ(written("equals"), "name,") << screen_;
}

TEST_F(Typing, IntoFishIsCompleted) {
  if (!fs::exists("/usr/bin/fish")) GTEST_SKIP() << "no fish";
  write("kelvin.fish", script("fish"));
  const auto offered = [&](const std::string& line) {
    const auto asked = "source kelvin.fish; complete -C '" + line + "'";
    return StartedCommand(
               {"/bin/sh", "-c",
                "cd " + folder_.path().string() + " && exec fish --no-config -c \"" + asked + "\""},
               {"PATH=" KELVIN_BINARY_DIR ":/usr/bin:/bin", "HOME=" + folder_.path().string()})
        .wait()
        .out;
  };
  EXPECT_NE(offered("kelvin tr").find("train\tTrain one network"), std::string::npos);
  EXPECT_NE(offered("kelvin train --mod").find("--model\tarchitecture"), std::string::npos);
  EXPECT_NE(offered("kelvin train --model=resnet5").find("--model=resnet50\t"), std::string::npos);
  EXPECT_NE(offered("kelvin train --config ke").find("kelvin.fish"), std::string::npos);
  EXPECT_NE(offered("kelvin train --config=ke").find("--config=kelvin.fish"), std::string::npos);
  EXPECT_EQ(offered("kelvin train --output ke").find("kelvin.fish"), std::string::npos);
  EXPECT_EQ(offered("kelvin list losses -o c"), "csv\n");
}

}  // namespace kelvin::completion_test
