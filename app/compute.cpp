#include "app/compute.h"

#include <fmt/format.h>

#include "app/compute_library.h"
#include "app/exit_code.h"
#include "app/human_text.h"
#include "app/interrupts.h"
#include "app/run_context.h"
#include "kelvin/core/check.h"
#include "kelvin/core/shown_text.h"

namespace kelvin {

int compute(const std::string& verb, const CommonFlags& flags,
            const std::function<void(const ComputeApi&, const RunContext&)>& work,
            const std::function<void()>& on_failure) {
  const auto& api = load_compute_library(flags.threads());
  catch_interrupts(SecondInterrupt::exits);
  try {
    ProgressBar bar(flags.is_quiet());
    auto context = run_context(bar);
    context.data_folder = flags.data_folder();
    work(api, context);
  } catch (const Error& error) {
    on_failure();
    if (interrupts() == 0) throw;
    print_for_people(fmt::format("kelvin {}: {}\n", verb, shown_line(error.what())));
    return interrupt_exit_code();
  } catch (...) {
    on_failure();
    throw;
  }
  return kSuccess;
}

}  // namespace kelvin
