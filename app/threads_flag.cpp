#include "app/threads_flag.h"

#include "app/flag_values.h"
#include "app/machine.h"
#include "kelvin/core/check.h"

namespace kelvin {

void ThreadsFlag::declare(CLI::App& command) {
  command
      .add_option("--threads", text_,
                  "threads to compute with (default: $OMP_NUM_THREADS, else all cores)")
      ->type_name("N");
}

int64_t ThreadsFlag::threads() const {
  if (text_.empty()) return default_threads();
  const auto threads = whole_number_of("--threads", text_);
  check(threads >= 1 && threads <= kMostThreads, "--threads: must be from 1 to ", kMostThreads,
        ", got ", threads);
  return threads;
}

}  // namespace kelvin
