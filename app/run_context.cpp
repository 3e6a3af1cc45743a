#include "app/run_context.h"

#include <fmt/format.h>

#include <chrono>

#include "app/interrupts.h"

namespace kelvin {

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
  };
}

}  // namespace kelvin
