#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/command.h"

namespace kelvin {

// What a script for Debian's Python prints: NumPy and SciPy are our oracles.
inline std::string python_output(const std::string& script,
                                 const std::vector<std::string>& arguments = {}) {
  std::vector<std::string> words = {"/usr/bin/python3", "-c", script};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const auto result = StartedCommand(words).wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

}  // namespace kelvin
