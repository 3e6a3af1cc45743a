#include "app/cli/interrupts.h"

#include <unistd.h>

#include <csignal>
#include <initializer_list>
#include <string_view>

namespace kelvin {
namespace {

// What a signal handler may touch.
volatile std::sig_atomic_t signals_seen = 0;
volatile std::sig_atomic_t last_signal = 0;
volatile std::sig_atomic_t second_exits = 0;
volatile std::sig_atomic_t grace_seconds = 0;  // 0: as long as it takes

extern "C" void kelvin_count_interrupt(int signal) {
  last_signal = signal;
  signals_seen = signals_seen + 1;
  if (second_exits != 0 && signals_seen > 1) ::_exit(128 + signal);
  if (grace_seconds != 0) ::alarm(static_cast<unsigned>(grace_seconds));
}

extern "C" void kelvin_end_interrupted(int /*signal*/) {
  constexpr std::string_view kMessage = "\nkelvin: stopped while computing\n";
  // The first character ends the line that a progress bar stands in.
  const auto text = kMessage.substr(::isatty(STDERR_FILENO) != 0 ? 0 : 1);
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(128 + last_signal);
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

BriefInterrupts::BriefInterrupts() {
  constexpr int kGraceSeconds = 3;  // most work is asked to stop more often, and then says more
  struct sigaction action {};
  action.sa_handler = kelvin_end_interrupted;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGALRM, &action, nullptr);
  grace_seconds = kGraceSeconds;
  catch_interrupts(SecondInterrupt::exits);
}

BriefInterrupts::~BriefInterrupts() {
  grace_seconds = 0;
  ::alarm(0);
}

int interrupts() { return signals_seen; }

int interrupt_exit_code() { return 128 + last_signal; }

}  // namespace kelvin
