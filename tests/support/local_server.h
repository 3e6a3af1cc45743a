#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/command.h"

namespace kelvin {

// tests/support/flaky_server.py for a folder of its own, on a free port of this machine.  It ends
// with this object, and with this process however that ends.
class LocalServer {
 public:
  LocalServer() {
    std::array<int, 2> to_server{};
    std::array<int, 2> from_server{};
    if (::pipe2(to_server.data(), O_CLOEXEC) != 0 || ::pipe2(from_server.data(), O_CLOEXEC) != 0) {
      ADD_FAILURE() << "no pipes";
      return;
    }
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, to_server[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, from_server[1], STDOUT_FILENO);
    std::vector<std::string> words = {"/usr/bin/python3",
                                      KELVIN_SOURCE_DIR "/tests/support/flaky_server.py",
                                      folder_.path().string()};
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int failure =
        ::posix_spawn(&process_, arguments[0], &files, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    ::close(to_server[0]);
    ::close(from_server[1]);
    input_ = to_server[1];
    EXPECT_EQ(failure, 0);
    char letter = 0;
    while (::read(from_server[0], &letter, 1) == 1 && letter != '\n') port_ += letter;
    ::close(from_server[0]);
    EXPECT_NE(port_, "") << "the server did not start";
  }

  ~LocalServer() {
    ::close(input_);
    int status = 0;
    if (process_ > 0) ::waitpid(process_, &status, 0);
  }
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  // Put there what is to be served.
  const TemporaryFolder& folder() const { return folder_; }

  // Nothing is served, nothing was requested.
  void forget() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      std::filesystem::remove_all(entry.path());
    }
  }

  // `path` begins with the fault, as the script explains.
  std::string address(const std::string& path) const {
    return "http://127.0.0.1:" + port_ + "/" + path;
  }

  // "PATH RANGE" of every request so far.
  std::vector<std::string> requests() const {
    std::ifstream log(folder_ / ".requests");
    std::vector<std::string> lines;
    for (std::string line; std::getline(log, line);) lines.push_back(line);
    return lines;
  }

 private:
  TemporaryFolder folder_;
  pid_t process_ = 0;
  int input_ = -1;
  std::string port_;
};

// One for all tests of this process, which takes no time to start; as if it were new.
inline LocalServer& fresh_server() {
  ::setenv("no_proxy", "*", 1);  // whatever proxy this machine has
  static LocalServer server;
  server.forget();
  return server;
}

// An address at which nobody listens: port 1 is reserved and never in use.
inline std::string closed_address(const std::string& name) { return "http://127.0.0.1:1/" + name; }

}  // namespace kelvin
