#include "app/cli/run_result.h"

#include <fmt/format.h>

#include "app/cli/common_flags.h"
#include "app/cli/human_text.h"
#include "app/cli/interrupts.h"
#include "app/cli/terminal.h"
#include "kelvin/core/reading.h"
#include "kelvin/report/tables/comparison.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {

int print_run_result(const std::string& verb, const std::string& run, TableFormat format) {
  const auto loaded = load_run(run);
  if (loaded.status == RunStatus::stopped) {
    print_for_people(fmt::format("kelvin {}: stopped; go on with: kelvin resume {}\n", verb, run));
    return interrupts() > 0 ? interrupt_exit_code() : kSuccess;
  }
  const auto comparison = compare({loaded});
  for (const auto& sentence : caveats(loaded.readings)) print_remark("care: " + sentence);
  if (format == TableFormat::text) {
    print_table(comparison_table(comparison), format);
    fmt::print("\nrun folder: {}\n", run);
  } else {
    print_table(comparison_records(comparison), format);
  }
  return kSuccess;
}

}  // namespace kelvin
