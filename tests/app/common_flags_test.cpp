#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "kelvin/core/text.h"
#include "kelvin/report/tables/text_table.h"
#include "tests/support/all_commands.h"
#include "tests/support/command.h"
#include "tests/support/fake_run.h"

namespace kelvin::common_flags_test {

TEST(CommonFlags, AreThoseOfEveryVerbAndJob) {
  const auto commands = all_commands();
  EXPECT_GE(commands.size(), 20U);
  for (const auto& command : commands) {
    const auto help = run_tool(joined(command, {"--help"}));
    EXPECT_EQ(help.exit_code, 0) << join(command, " ");
    const auto common = help.out.substr(std::min(help.out.size(), help.out.find("Flags of every")));
    for (const char* flag :
         {"-h, --help", "-q, --quiet", "-o, --format FORMAT", "--data-dir DIR", "--threads N"}) {
      EXPECT_NE(common.find(flag), std::string::npos) << join(command, " ") << " " << flag;
    }
  }
}

// What must be given besides flags.
Words arguments_of(const Words& command) {
  static const std::map<std::string, Words> known = {{"calibrate", {"a"}},
                                                     {"compare", {"a", "b"}},
                                                     {"completion", {"bash"}},
                                                     {"data fetch", {"a"}},
                                                     {"measure", {"a"}},
                                                     {"model norms", {"a"}},
                                                     {"model show", {"a"}},
                                                     {"probe", {"a"}},
                                                     {"prune", {"a"}},
                                                     {"report", {"a"}},
                                                     {"reproduce", {"a"}},
                                                     {"resume", {"a"}},
                                                     {"runs", {"a"}},
                                                     {"truncate", {"a"}},
                                                     {"data show", {"a", "--output", "b"}},
                                                     {"attention fit", {"a"}},
                                                     {"attention evaluate", {"a"}},
                                                     {"attention inspect", {"a"}},
                                                     {"attention train", {"--output", "b"}}};
  const auto found = known.find(join(command, " "));
  return found == known.end() ? Words{} : found->second;
}

TEST(CommonFlags, AreCheckedByEveryVerbAndJob) {
  for (const auto& command : all_commands()) {
    const auto name = join(command, " ");
    const auto words = joined(command, arguments_of(command));
    const auto format = run_tool(joined(words, {"-o", "xml"}));
    EXPECT_EQ(format.exit_code, 2) << name;
    EXPECT_NE(format.err.find("got 'xml'"), std::string::npos) << name << ": " << format.err;
    const auto threads = run_tool(joined(words, {"--threads", "0"}));
    EXPECT_EQ(threads.exit_code, 2) << name;
    EXPECT_NE(threads.err.find("--threads: must be from 1"), std::string::npos)
        << name << ": " << threads.err;
  }
}

TEST(CommonFlags, AreHarmlessWhereTheyDoNothing) {
  const TemporaryFolder folder;
  write_fake_run(folder.path() / "a", 1, 0, 90);
  const auto plain = run_tool({"runs", folder.path()});
  const auto flagged =
      run_tool({"runs", folder.path(), "-q", "--threads", "1", "--data-dir", "/x"});
  EXPECT_EQ(flagged.exit_code, 0) << flagged.err;
  EXPECT_EQ(flagged.out, plain.out);
}

TEST(CommonFlags, MayStandBeforeTheNameOfAJob) {
  const auto after = run_tool({"data", "list", "-o", "csv", "--data-dir", "/nowhere"});
  const auto before = run_tool({"data", "-o", "csv", "--data-dir", "/nowhere", "list"});
  EXPECT_EQ(before.exit_code, 0) << before.err;
  EXPECT_EQ(before.out, after.out);
  EXPECT_TRUE(before.out.starts_with("name,")) << before.out;
}

TEST(CommonFlags, GiveEveryResultInEveryFormat) {
  const TemporaryFolder folder;
  write_fake_run(folder.path() / "a", 1, 0, 90);
  const std::vector<Words> commands = {{"list"},
                                       {"list", "models"},
                                       {"data", "list"},
                                       {"runs", folder.path()},
                                       {"report", folder.path()},
                                       {"compare", folder / "a", folder / "a", "--all"}};
  for (const auto& command : commands) {
    const auto json = run_tool(joined(command, {"-o", "json"}));
    EXPECT_EQ(json.exit_code, 0) << json.err;
    EXPECT_FALSE(nlohmann::json::parse(json.out, nullptr, false).is_discarded()) << json.out;
    const auto markdown = run_tool(joined(command, {"-o", "md"}));
    EXPECT_NE(markdown.out.find("\n| --- |"), std::string::npos) << markdown.out;
  }
}

TEST(EqualFlags, LeaveTheLastWord) {
  const auto csv = run_tool({"list", "losses", "-o", "csv"});
  EXPECT_EQ(run_tool({"list", "losses", "-o", "json", "-o", "csv"}).out, csv.out);
  EXPECT_EQ(run_tool({"list", "losses", "-q", "-o", "csv", "--quiet"}).out, csv.out);
  const auto rate = run_tool({"train", "--lr", "1", "--lr", "abc", "--output", "/nowhere/x"});
  EXPECT_NE(rate.err.find("--lr: must be a number, got 'abc'"), std::string::npos) << rate.err;
  const auto both = run_tool({"train", "--lr", "abc", "--lr", "1", "--epochs", "x", "--epochs",
                              "1.5", "--output", "/nowhere/x"});
  EXPECT_NE(both.err.find("--epochs: must be a whole number, got '1.5'"), std::string::npos)
      << both.err;
}

TEST(Help, FitsEightyColumnsAndTheTerminal) {
  for (const char* columns : {"80", "60"}) {
    const auto width = static_cast<size_t>(std::stoi(columns));
    for (const auto& command : all_commands()) {
      const auto help = run_tool(joined(command, {"--help"}), {std::string("COLUMNS=") + columns});
      for (const auto& line : split(help.out, '\n')) {
        EXPECT_LE(shown_width(line), width) << join(command, " ") << ": " << line;
      }
    }
  }
}

TEST(Help, SaysWhatThreadsMeansToTheVerb) {
  const std::map<std::string, std::string> meanings = {
      {"train", "threads to compute with (default: $OMP_NUM_THREADS, else all cores)"},
      {"demo", "threads of all runs together (default: $OMP_NUM_THREADS, else all cores)"},
      {"sweep", "threads of each run (default: 1)"},
      {"reproduce", "threads of each run (default: 1)"},
      {"resume", "threads to compute with (default: as many as the run had)"}};
  for (const auto& [verb, meaning] : meanings) {
    const auto help = run_tool({verb, "--help"}, {"COLUMNS=200"}).out;
    EXPECT_NE(help.find("  " + meaning + "\n"), std::string::npos) << verb << ": " << help;
  }
}

TEST(Help, ShowsOnlyTheFlagsThatMatterToTheVerb) {
  for (const char* verb : {"measure", "ood", "calibrate", "probe", "truncate"}) {
    const auto help = run_tool({verb, "--help"}).out;
    for (const char* flag : {"--lr ", "--epochs ", "--opt ", "--sched ", "--precision ",
                             "--checkpoint-steps ", "--augment ", "--pretrained "}) {
      EXPECT_EQ(help.find(flag), std::string::npos) << verb << " " << flag;
    }
    EXPECT_NE(help.find("Flags for a file of weights:"), std::string::npos) << verb;
    EXPECT_NE(help.find("--model NAME"), std::string::npos) << verb;
  }
  const std::map<std::string, Words> own = {
      {"measure", {"--measures ", "--protocol ", "--definitions"}},
      {"ood", {"--detectors ", "--near ", "--ood "}},
      {"probe", {"--probe ", "--tap ", "--ood "}},
      {"calibrate", {"--bins ", "--eval-temperature "}},
      {"truncate", {"--layer ", "--memory "}}};
  for (const auto& [verb, flags] : own) {
    const auto help = run_tool({verb, "--help"}).out;
    for (const auto& flag : flags) {
      EXPECT_LT(help.find("  " + flag), help.find("Flags for a file")) << verb << " " << flag;
    }
  }
  const auto train = run_tool({"train", "--help"}).out;
  for (const char* flag : {"--lr ", "--epochs ", "--measures ", "--protocol ", "--ood "}) {
    EXPECT_NE(train.find(flag), std::string::npos) << flag;
  }
}

TEST(Help, OfAnotherVerbIsNamedWhereItsFlagIsGiven) {
  const TemporaryFolder folder;
  write_fake_run(folder.path() / "a", 1, 0, 90);
  const auto result = run_tool({"measure", folder / "a", "--lr", "1"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "kelvin measure: --lr: is for 'kelvin train'; a trained network has no use for it\n");
}

}  // namespace kelvin::common_flags_test
