#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.h"

namespace kelvin::results_test {

namespace fs = std::filesystem;

const fs::path kRoot = KELVIN_SOURCE_DIR;

// The words of the command that a page says it was printed by; none if it does not say so.
std::vector<std::string> command_of(const std::string& page) {
  const std::string opening = "<!-- kelvin ";
  if (!page.starts_with(opening)) return {};
  std::istringstream line(page.substr(opening.size(), page.find(" -->") - opening.size()));
  std::vector<std::string> words;
  for (std::string word; line >> word;) words.push_back(word);
  return words;
}

// `make results` prints them anew.
TEST(Results, AreWhatTheirCommandsPrintFromKeptReadings) {
  const TemporaryFolder folder;
  int pages = 0;
  for (const auto& file : fs::directory_iterator(kRoot / "results")) {
    if (file.path().extension() != ".md") continue;
    const auto page = whole_file(file.path());
    auto words = command_of(page);
    if (words.empty()) continue;
    ++pages;
    words.insert(words.end(), {"--readings", kRoot / "results/readings", "--output",
                               folder / file.path().stem().string()});
    auto printed = run_tool(words);
    ASSERT_EQ(printed.exit_code, 0) << file.path() << ": " << printed.err;
    while (printed.out.ends_with("\n\n")) printed.out.pop_back();
    const bool is_equal = page.substr(page.find('\n') + 2) == printed.out;
    EXPECT_TRUE(is_equal) << file.path() << ": 'make results' prints something else";
  }
  EXPECT_GT(pages, 0);
}

}  // namespace kelvin::results_test
