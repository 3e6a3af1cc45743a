#include "app/cli/child_runs.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <thread>

#include "app/cli/compute.h"
#include "app/cli/interrupts.h"
#include "kelvin/core/check.h"
#include "kelvin/core/files.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr auto kPollInterval = std::chrono::milliseconds(50);

pid_t start(const ChildRun& child) {
  const auto program = executable_path().string();
  std::vector<std::string> words = {program};
  words.insert(words.end(), child.arguments.begin(), child.arguments.end());
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, child.log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A group of its own: Ctrl-C in the terminal reaches the child once, through us.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t process = 0;
  const int failure =
      ::posix_spawn(&process, program.c_str(), &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  check(failure == 0, child.name, ": cannot be started: ", std::strerror(failure));
  return process;
}

// The children that were started and not yet waited for, by process id.
class RunningChildren {
 public:
  RunningChildren() = default;
  RunningChildren(const RunningChildren&) = delete;
  RunningChildren& operator=(const RunningChildren&) = delete;

  // Also when an exception passes by, no child is left behind.
  ~RunningChildren() {
    send(SIGTERM);
    for (const auto& [process, place] : places_) ::waitpid(process, nullptr, 0);
  }

  void add(pid_t process, size_t place) { places_[process] = place; }
  size_t count() const { return places_.size(); }

  void send(int signal) const {
    for (const auto& [process, place] : places_) ::kill(process, signal);
  }

  // Calls `on_end` with place and exit code of each child that has ended.
  void collect(const std::function<void(size_t place, int exit_code)>& on_end) {
    for (auto child = places_.begin(); child != places_.end();) {
      int status = 0;
      if (::waitpid(child->first, &status, WNOHANG) != child->first) {
        ++child;
        continue;
      }
      const size_t place = child->second;
      child = places_.erase(child);
      on_end(place, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
  }

 private:
  std::map<pid_t, size_t> places_;
};

}  // namespace

std::string last_line_of(const fs::path& log) {
  if (!fs::is_regular_file(log)) return "";
  auto text = read_file(log);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const auto newline = text.rfind('\n');
  return newline == std::string::npos ? text : text.substr(newline + 1);
}

std::vector<ChildOutcome> run_children(const std::vector<ChildRun>& children,
                                       const ChildRunsOptions& options) {
  check(options.jobs >= 1, "jobs: must be at least 1, got ", options.jobs);
  catch_interrupts(SecondInterrupt::is_counted);
  std::vector<ChildOutcome> outcomes;
  outcomes.reserve(children.size());
  for (const auto& child : children) outcomes.push_back({.name = child.name, .last_line = ""});

  RunningChildren running;
  size_t next = 0;
  int interrupts_forwarded = 0;
  while (true) {
    const bool may_start = interrupts() == 0;
    while (may_start && next < children.size() &&
           running.count() < static_cast<size_t>(options.jobs)) {
      running.add(start(children[next]), next);
      outcomes[next++].was_started = true;
    }
    if (running.count() == 0) break;
    if (interrupts() > interrupts_forwarded) {
      interrupts_forwarded = interrupts();
      running.send(SIGTERM);
    }
    running.collect([&](size_t place, int exit_code) {
      outcomes[place].exit_code = exit_code;
      outcomes[place].last_line = last_line_of(children[place].log);
      options.on_end(outcomes[place]);
    });
    options.on_wait();
    std::this_thread::sleep_for(kPollInterval);
  }
  return outcomes;
}

}  // namespace kelvin
