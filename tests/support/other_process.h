#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace kelvin {

// A copy of this process that did `work` and now waits; killed, without any cleaning up, at the end
// or by kill().
class OtherProcess {
 public:
  explicit OtherProcess(const std::function<void(const std::function<void()>&)>& work) {
    int ends[2] = {};
    if (::pipe(ends) != 0) return;
    process_ = ::fork();
    if (process_ == 0) {
      const char done = 1;
      try {
        work([&] {
          if (::write(ends[1], &done, 1) == 1) ::pause();
        });
      } catch (...) {
        ::_exit(1);
      }
      ::_exit(0);
    }
    ::close(ends[1]);
    char done = 0;
    is_waiting_ = ::read(ends[0], &done, 1) == 1;
    ::close(ends[0]);
  }
  ~OtherProcess() { kill(); }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

  pid_t process() const { return process_; }
  // The work reached its wait.
  bool is_waiting() const { return is_waiting_; }

 private:
  pid_t process_ = -1;
  bool is_waiting_ = false;
};

}  // namespace kelvin
