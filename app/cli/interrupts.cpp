#include "app/cli/interrupts.h"

#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace kelvin {
namespace {

// What a signal handler may touch.
volatile std::sig_atomic_t signals_seen = 0;
volatile std::sig_atomic_t last_signal = 0;
volatile std::sig_atomic_t second_exits = 0;

extern "C" void kelvin_count_interrupt(int signal) {
  last_signal = signal;
  signals_seen = signals_seen + 1;
  if (second_exits != 0 && signals_seen > 1) ::_exit(128 + signal);
}

}  // namespace

void catch_interrupts(SecondInterrupt second) {
  second_exits = second == SecondInterrupt::exits ? 1 : 0;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old {};
    ::sigaction(signal, nullptr, &old);
    if (old.sa_handler == SIG_IGN) continue;  // nohup, or a background job of a shell
    struct sigaction action {};
    action.sa_handler = kelvin_count_interrupt;
    ::sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;  // writing files goes on
    ::sigaction(signal, &action, nullptr);
  }
}

int interrupts() { return signals_seen; }

int interrupt_exit_code() { return 128 + last_signal; }

}  // namespace kelvin
