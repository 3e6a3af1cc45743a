#pragma once

namespace kelvin {

// What happens when the user presses Ctrl-C again because the first time has no effect yet.
enum class SecondInterrupt { exits, is_counted };

// From now on SIGINT, SIGTERM and SIGHUP do not end the process but are counted.
void catch_interrupts(SecondInterrupt second);

// While it lives, for a process that has nothing to save: one that still computes some seconds
// after the first of them, because a solver looks at nothing else, ends then.
class BriefInterrupts {
 public:
  BriefInterrupts();
  ~BriefInterrupts();
  BriefInterrupts(const BriefInterrupts&) = delete;
  BriefInterrupts& operator=(const BriefInterrupts&) = delete;
};

int interrupts();

// 128 + the signal's number, as shells report a program that a signal ended.
int interrupt_exit_code();

}  // namespace kelvin
