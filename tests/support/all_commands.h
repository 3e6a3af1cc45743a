#pragma once

#include <string>
#include <vector>

#include "kelvin/core/text.h"
#include "tests/support/command.h"

namespace kelvin {

using Words = std::vector<std::string>;

inline Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Verbs and jobs as a help names them: "  NAME  summary".
inline Words names_below(const std::string& help, const std::string& title) {
  Words names;
  bool is_in_list = false;
  for (const auto& line : split(help, '\n')) {
    if (line.empty()) is_in_list = false;
    if (is_in_list && line.size() > 2 && line[2] != ' ') {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
    if (line == title) is_in_list = true;
  }
  return names;
}

// {"train"}, {"data", "fetch"}, ...: every one that there is.
inline std::vector<Words> all_commands() {
  std::vector<Words> commands;
  for (const auto& verb : names_below(run_tool({"--help"}).out, "Verbs:")) {
    const auto jobs = names_below(run_tool({verb, "--help"}).out, "Jobs:");
    if (jobs.empty()) commands.push_back({verb});
    for (const auto& job : jobs) commands.push_back({verb, job});
  }
  return commands;
}

}  // namespace kelvin
