#include "app/cli/child_runs.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

constexpr int kCannotStart = 127;  // as shells say it
constexpr auto kPollInterval = std::chrono::milliseconds(50);

pid_t start(const ChildRun& child) {
  const auto program = executable_path().string();
  std::vector<std::string> words = {program};
  words.insert(words.end(), child.arguments.begin(), child.arguments.end());
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  check(process >= 0, child.name, ": cannot be started: ", std::strerror(errno));
  if (process == 0) {
    // Between fork and exec of a process with threads: system calls alone.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // whoever kills us must not leave runs behind
    if (::getppid() != parent) ::_exit(kCannotStart);
    ::setpgid(0, 0);  // a group of its own: Ctrl-C in the terminal reaches it once, through us
    const int nothing = ::open("/dev/null", O_RDWR);
    const int log = ::open(child.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(nothing, STDOUT_FILENO);
    ::dup2(log >= 0 ? log : nothing, STDERR_FILENO);
    ::execv(program.c_str(), arguments.data());
    ::_exit(kCannotStart);
  }
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

std::string failure_text(const ChildOutcome& outcome) {
  if (!outcome.last_line.empty()) return outcome.name + ": " + outcome.last_line;
  if (outcome.exit_code > 128) {
    return outcome.name + ": ended by signal " + std::to_string(outcome.exit_code - 128);
  }
  return outcome.name + ": exit code " + std::to_string(outcome.exit_code);
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
