#include "app/compute_flags.h"

#include <fmt/format.h>

#include "app/compute_library.h"
#include "app/exit_code.h"
#include "app/human_text.h"
#include "app/interrupts.h"
#include "app/run_context.h"
#include "kelvin/core/check.h"

namespace kelvin {

void ComputeFlags::declare(CLI::App& command) {
  command.add_flag("-q,--quiet", is_quiet_, "no progress");
  data_folder_.declare(command);
  threads_.declare(command);
}

int ComputeFlags::run(const std::string& verb,
                      const std::function<void(const ComputeApi&, const RunContext&)>& work,
                      const std::function<void()>& on_failure) const {
  const auto& api = load_compute_library(threads_.threads());
  catch_interrupts(SecondInterrupt::exits);
  try {
    ProgressBar bar(is_quiet_);
    auto context = run_context(bar);
    context.data_folder = data_folder();
    work(api, context);
  } catch (const Error& error) {
    on_failure();
    if (interrupts() == 0) throw;
    print_for_people(fmt::format("kelvin {}: {}\n", verb, error.what()));
    return interrupt_exit_code();
  } catch (...) {
    on_failure();
    throw;
  }
  return kSuccess;
}

}  // namespace kelvin
