#include "app/bench/line_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>

#include "app/cli/child_runs.h"
#include "kelvin/core/check.h"
#include "kelvin/core/files.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

struct Pipe {
  int reading = -1;
  int writing = -1;
};

// Not for the programs that others start.
Pipe open_pipe(const std::string& name) {
  std::array<int, 2> ends = {-1, -1};
  check(::pipe2(ends.data(), O_CLOEXEC) == 0, name, ": no pipe to it: ", std::strerror(errno));
  return {.reading = ends[0], .writing = ends[1]};
}

// A program that ended while we write to it is told by write(), not by a signal that ends us.
void ignore_broken_pipes() { ::signal(SIGPIPE, SIG_IGN); }

int spawn(pid_t& process, std::vector<std::string>& words, const fs::path& log, int input,
          int output) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0644);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t usual;
  ::sigemptyset(&usual);
  ::sigaddset(&usual, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int failure =
      ::posix_spawn(&process, words[0].c_str(), &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return failure;
}

}  // namespace

LineProcess::LineProcess(std::string name, std::vector<std::string> words, fs::path log)
    : name_(std::move(name)), log_(std::move(log)) {
  ignore_broken_pipes();
  const auto to = open_pipe(name_);
  const auto from = open_pipe(name_);
  const int failure = spawn(process_, words, log_, to.reading, from.writing);
  ::close(to.reading);
  ::close(from.writing);
  input_ = to.writing;
  output_ = from.reading;
  if (failure == 0) return;
  ::close(input_);
  ::close(output_);
  check(false, name_, ": ", words[0], " cannot be started: ", std::strerror(failure));
}

LineProcess::~LineProcess() {
  ::close(input_);
  ::close(output_);
  ::kill(process_, SIGTERM);
  ::waitpid(process_, nullptr, 0);
}

void LineProcess::send(const std::string& line) {
  const auto text = line + "\n";
  for (size_t sent = 0; sent < text.size();) {
    const auto count = ::write(input_, text.data() + sent, text.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail();
    sent += static_cast<size_t>(count);
  }
}

std::string LineProcess::receive() {
  while (unread_.find('\n') == std::string::npos) {
    std::array<char, 4096> buffer;
    const auto count = ::read(output_, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail();
    unread_.append(buffer.data(), static_cast<size_t>(count));
  }
  const auto end = unread_.find('\n');
  auto line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

int64_t LineProcess::peak_memory() const {
  std::ifstream status("/proc/" + std::to_string(process_) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("VmHWM:")) continue;
    std::istringstream words(line.substr(6));
    int64_t kibibytes = 0;
    words >> kibibytes;
    return 1024 * kibibytes;
  }
  return 0;
}

void LineProcess::fail() const {
  const auto reason = last_line_of(log_);
  check(false, name_, " ended before its time", reason.empty() ? "" : ": ", reason);
}

}  // namespace kelvin
