#pragma once

#include <ATen/Parallel.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "app/cli/machine.h"

namespace kelvin {

// First thing in main: the process gets the threads, instruction set and allocator of the tool.
// OpenMP reads its settings before main, so the program starts itself once more with them.
inline void become_tool_process(char** arguments) {
  constexpr auto kMark = "KELVIN_BENCHMARK_PREPARED";
  const bool is_prepared = std::getenv(kMark) != nullptr;
  const auto threads = default_threads();
  prepare_process(threads);
  if (!is_prepared && ::setenv(kMark, "1", /*overwrite=*/1) == 0) {
    ::execv("/proc/self/exe", arguments);
  }
  at::set_num_threads(static_cast<int>(threads));
}

// The main of a benchmark: `run` gets the words after the program's name; what it throws is said.
inline int run_as_tool(int count, char** arguments, int (*run)(const std::vector<std::string>&)) {
  become_tool_process(arguments);
  try {
    return run({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}

}  // namespace kelvin
