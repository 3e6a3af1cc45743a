#include "app/cli/run_context.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>

#include "app/cli/human_text.h"
#include "app/cli/interrupts.h"

namespace kelvin {
namespace {

std::string host_name() {
  std::array<char, 256> name = {};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "host";
  return name.data();
}

}  // namespace

RunContext run_context(ProgressBar& bar) {
  return {
      .report_progress =
          [&bar](const Progress& progress) {
            bar.show({.label = progress.phase,
                      .done = static_cast<double>(progress.done),
                      .total = static_cast<double>(progress.total),
                      .rate = progress.images_per_second > 0
                                  ? fmt::format("{:.0f} images/s", progress.images_per_second)
                                  : "",
                      .note = progress.note});
          },
      .seconds =
          [] {
            const auto now = std::chrono::steady_clock::now().time_since_epoch();
            return std::chrono::duration<double>(now).count();
          },
      .should_stop = [] { return interrupts() > 0; },
      .time_of_day =
          [] {
            const auto now = std::chrono::system_clock::now().time_since_epoch();
            return std::chrono::duration<double>(now).count();
          },
      .peak_memory =
          [] {
            rusage usage{};
            ::getrusage(RUSAGE_SELF, &usage);
            return int64_t{1024} * usage.ru_maxrss;
          },
      // Also of a quiet run: progress is what nobody may want to see.
      .warn =
          [&bar](const std::string& text) {
            bar.clear();
            print_for_people("warning: " + text + "\n");
          },
      .inform = [&bar](const std::string& text) { bar.say(text); },
      .process_name = host_name() + "." + std::to_string(::getpid()),
  };
}

}  // namespace kelvin
