#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace kelvin {

// A folder of its own for one test, removed at its end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    auto pattern = (std::filesystem::temp_directory_path() / "kelvin-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

struct CommandResult {
  int exit_code = 0;  // 128 + the signal's number if one ended it
  std::string out = {};
  std::string err = {};
  double seconds = 0;
};

inline std::string whole_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

// A command on its way, with its output going to files.
class StartedCommand {
 public:
  // `environment` holds NAME=VALUE to be set beside what this process has.
  explicit StartedCommand(std::vector<std::string> words,
                          const std::vector<std::string>& environment = {})
      : started_(std::chrono::steady_clock::now()) {
    if (!environment.empty()) {
      std::vector<std::string> wrapped = {"/usr/bin/env"};
      wrapped.insert(wrapped.end(), environment.begin(), environment.end());
      wrapped.insert(wrapped.end(), words.begin(), words.end());
      words = std::move(wrapped);
    }
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    redirect(files, STDOUT_FILENO, output_ / "out");
    redirect(files, STDERR_FILENO, output_ / "err");
    is_started_ =
        ::posix_spawn(&process_, arguments[0], &files, nullptr, arguments.data(), environ) == 0;
    posix_spawn_file_actions_destroy(&files);
  }

  void send(int signal) const {
    if (is_started_) ::kill(process_, signal);
  }

  CommandResult wait() {
    if (!is_started_) return {.exit_code = 127, .err = "cannot be started"};
    int status = 0;
    ::waitpid(process_, &status, 0);
    const auto elapsed = std::chrono::steady_clock::now() - started_;
    return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            .out = whole_file(output_ / "out"),
            .err = whole_file(output_ / "err"),
            .seconds = std::chrono::duration<double>(elapsed).count()};
  }

 private:
  static void redirect(posix_spawn_file_actions_t& files, int descriptor, const std::string& path) {
    posix_spawn_file_actions_addopen(&files, descriptor, path.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0644);
  }

  TemporaryFolder output_;
  std::chrono::steady_clock::time_point started_;
  pid_t process_ = 0;
  bool is_started_ = false;
};

// The tool itself with these arguments.
inline std::vector<std::string> tool_words(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {KELVIN_TOOL};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

inline CommandResult run_tool(const std::vector<std::string>& arguments,
                              const std::vector<std::string>& environment = {}) {
  return StartedCommand(tool_words(arguments), environment).wait();
}

}  // namespace kelvin
