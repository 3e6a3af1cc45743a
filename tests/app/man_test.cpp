#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "kelvin/core/text.h"
#include "tests/support/all_commands.h"
#include "tests/support/command.h"

namespace kelvin::man_test {

namespace fs = std::filesystem;

// As it is read, on lines that are wide enough for each paragraph.
CommandResult shown(const std::string& page) {
  return StartedCommand({"/usr/bin/man", "--warnings", "-E", "UTF-8", "-P", "cat", "-l", page},
                        {"MANWIDTH=500", "LC_ALL=C.UTF-8", "MANROFFOPT=-ww"})
      .wait();
}

std::string plain(const std::string& text) {
  return std::regex_replace(text, std::regex("\\s+"), " ");
}

TEST(ManPages, AreThereForTheToolAndEachVerb) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_tool({"man", "--output", folder / "man1"}).exit_code, 0);
  Words expected = {"kelvin.1"};
  for (const auto& verb : names_below(run_tool({"--help"}).out, "Verbs:")) {
    expected.push_back("kelvin-" + verb + ".1");
    EXPECT_EQ(run_tool({"man", verb}).out, whole_file(folder / ("man1/kelvin-" + verb + ".1")));
  }
  Words found;
  for (const auto& file : fs::directory_iterator(folder / "man1")) {
    found.push_back(file.path().filename());
  }
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
}

TEST(ManPages, SayWhatTheHelpSaysAndAreWellFormed) {
  if (!fs::exists("/usr/bin/man") || !fs::exists("/usr/bin/groff")) GTEST_SKIP() << "no man";
  const TemporaryFolder folder;
  ASSERT_EQ(run_tool({"man", "--output", folder.path()}).exit_code, 0);
  const auto tool = shown(folder / "kelvin.1");
  EXPECT_EQ(tool.exit_code, 0);
  EXPECT_EQ(tool.err, "");
  for (const auto& command : all_commands()) {
    const auto page = shown(folder / ("kelvin-" + command.front() + ".1"));
    EXPECT_EQ(page.exit_code, 0) << command.front();
    EXPECT_EQ(page.err, "");
    EXPECT_NE(tool.out.find("kelvin-" + command.front() + "(1)"), std::string::npos);
    const auto help = run_tool(joined(command, {"--help"}), {"COLUMNS=500"}).out;
    for (const auto& line : split(help, '\n')) {
      // Without titles, which are capitals in a manual, and the summary of a job, which has a stop.
      if (line.empty() || line.ends_with(':')) continue;
      const auto text = line.starts_with("Usage: ") ? line.substr(7) : line;
      EXPECT_NE(plain(page.out).find(plain(text.substr(text.find_first_not_of(' ')))),
                std::string::npos)
          << join(command, " ") << ": " << text;
    }
  }
}

TEST(ManPages, RefuseInOneLine) {
  const auto unknown = run_tool({"man", "trian"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("kelvin man: no verb named 'trian'; did you mean 'train'?"),
            std::string::npos)
      << unknown.err;
  const auto both = run_tool({"man", "train", "--output", "/nowhere"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_EQ(both.err, "kelvin man: --output: is for all pages, and VERB for one\n");
}

}  // namespace kelvin::man_test
