#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "tests/support/command.h"

namespace kelvin::install_test {

// The first block of this language on the page.
std::string block_of(const std::string& page, const std::string& language) {
  const auto fence = "```" + language + "\n";
  const auto begin = page.find(fence) + fence.size();
  return page.substr(begin, page.find("```", begin) - begin);
}

CommandResult run_line(const std::string& line) {
  return StartedCommand({"/bin/sh", "-c", line}).wait();
}

TEST(InstallSlow, GivesWhatTheDocumentedProgramNeeds) {
  const TemporaryFolder folder;
  const auto page = whole_file(KELVIN_SOURCE_DIR "/docs/library.md");
  std::ofstream(folder / "CMakeLists.txt") << block_of(page, "cmake");
  std::ofstream(folder / "main.cpp") << block_of(page, "cpp");
  const auto prefix = folder / "prefix";
  const auto installed = run_line("cmake --install " KELVIN_BINARY_DIR " --prefix " + prefix);
  ASSERT_EQ(installed.exit_code, 0) << installed.err;
  const auto built = run_line("cd " + folder.path().string() + " && PREFIX=" + prefix + " && " +
                              "set -e; " + block_of(page, "sh"));
  ASSERT_EQ(built.exit_code, 0) << built.out << built.err;
  const auto result = run_line(folder / "build/my_ranks");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "rank 9\nsum 1000\n");
  const auto tool = run_line(prefix + "/bin/kelvin list measures");
  EXPECT_EQ(tool.exit_code, 0) << tool.err;
  // What is made of the tool's own flags.
  for (const char* file :
       {"share/man/man1/kelvin.1.gz", "share/man/man1/kelvin-train.1.gz",
        "share/bash-completion/completions/kelvin", "share/zsh/site-functions/_kelvin",
        "share/fish/vendor_completions.d/kelvin.fish"}) {
    EXPECT_TRUE(std::filesystem::exists(prefix + "/" + file)) << file;
  }
  // The Python package finds the tool that was installed with it.
  const auto python = StartedCommand({"/usr/bin/python3", "-c",
                                      "import kelvin; print(kelvin.find_tool(), kelvin.__file__)"},
                                     {"-u", "KELVIN_TOOL", "PATH=/nonexistent",
                                      "PYTHONPATH=" + prefix + "/lib/python3/dist-packages"})
                          .wait();
  EXPECT_EQ(python.exit_code, 0) << python.err;
  EXPECT_EQ(python.out,
            prefix + "/bin/kelvin " + prefix + "/lib/python3/dist-packages/kelvin/__init__.py\n");
}

// A project outside of this one, as examples/own_network is copied by somebody.
TEST(InstallSlow, GivesWhatANetworkOfOnesOwnNeeds) {
  const TemporaryFolder folder;
  const auto prefix = folder / "prefix";
  const auto project = folder / "project";
  std::filesystem::copy(KELVIN_SOURCE_DIR "/examples/own_network", project);
  const auto built =
      run_line("cmake --install " KELVIN_BINARY_DIR " --prefix " + prefix + " && cmake -S " +
               project + " -B " + project + "/build -DCMAKE_PREFIX_PATH=" + prefix +
               " && cmake --build " + project + "/build");
  ASSERT_EQ(built.exit_code, 0) << built.out << built.err;
  const auto result = run_line(project + "/build/own_network");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  // Of 20 classes the logits have rank 19 at most; a high temperature leaves a lower one.
  const auto rank_at = [&](const std::string& temperature) {
    const std::regex line("T = +" + temperature + " +solution_rank +(\\d+)\n");
    std::smatch match;
    EXPECT_TRUE(std::regex_search(result.out, match, line)) << result.out;
    return match.empty() ? 0 : std::stoi(match[1]);
  };
  EXPECT_LE(rank_at("1"), 19);
  EXPECT_GT(rank_at("100"), 0);
  EXPECT_NE(result.out.find("covariance_rank of first"), std::string::npos) << result.out;
}

}  // namespace kelvin::install_test
