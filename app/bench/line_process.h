#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kelvin {

// Another program that reads lines from its stdin and answers with lines on its stdout.  Whoever
// waits for the other does so in the system, without using a core.  Ends with this object.
class LineProcess {
 public:
  // `words` are the program's path and its arguments, `log` receives its stderr.  `name` opens
  // messages.
  LineProcess(std::string name, std::vector<std::string> words, std::filesystem::path log);
  ~LineProcess();
  LineProcess(const LineProcess&) = delete;
  LineProcess& operator=(const LineProcess&) = delete;

  void send(const std::string& line);

  // The next line; an Error with what the program said last if it has ended.
  std::string receive();

  // The most memory it had so far, in bytes.
  int64_t peak_memory() const;

  const std::string& name() const { return name_; }

 private:
  void fail() const;

  std::string name_;
  std::filesystem::path log_;
  pid_t process_ = 0;
  int input_ = -1;   // of the program, we write
  int output_ = -1;  // of the program, we read
  std::string unread_;
};

}  // namespace kelvin
