#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace kelvin {

// This program again, as a process of its own: runs do not share LibTorch's
// thread pool, and one that fails takes no other with it.
struct ChildRun {
  std::string name;
  std::vector<std::string> arguments;  // verb and flags
  std::filesystem::path log;           // receives its stderr
};

struct ChildOutcome {
  std::string name;
  bool was_started = false;
  int exit_code = 0;      // 128 + the signal's number if one ended it
  std::string last_line;  // of its stderr
};

struct ChildRunsOptions {
  int64_t jobs = 1;  // processes at once
  std::function<void(const ChildOutcome&)> on_end = [](const ChildOutcome&) {};
  std::function<void()> on_wait = [] {};  // called several times a second
};

// What a program said last; empty if there is no such log.
std::string last_line_of(const std::filesystem::path& log);

// "NAME: what it said last", for one that did not end well.
std::string failure_text(const ChildOutcome& outcome);

// Runs all of them, in order, and returns an outcome for each.  Catches interrupts: the first is
// handed on to the children as SIGTERM, nothing new is started, and those running are waited for.
// If this process dies they are sent SIGTERM.
std::vector<ChildOutcome> run_children(const std::vector<ChildRun>& children,
                                       const ChildRunsOptions& options);

}  // namespace kelvin
