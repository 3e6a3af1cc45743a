#include "kelvin/report/collapse_table.h"

#include <fmt/format.h>

#include "kelvin/report/collapse_steps.h"

namespace kelvin {
namespace {

template <typename Number>
std::string cell(const std::optional<Number>& number) {
  return number ? fmt::format("{}", *number) : "";
}

}  // namespace

Table collapse_table(const std::vector<Run>& runs) {
  Table table{.columns = {{.name = "run"}}};
  for (const char* name :
       {"steps", "fitted_step", "collapse_step", "rank_at_fit", "rank_at_end", "sampled_images"}) {
    table.columns.push_back({.name = name, .alignment = Alignment::right});
  }
  for (const auto& run : runs) {
    const auto steps = collapse_steps(run);
    table.rows.push_back({run.path.string(), cell(steps.last), cell(steps.fitted),
                          cell(steps.rank_settled), cell(steps.rank_at_fit),
                          cell(steps.rank_at_end), cell(steps.sampled)});
  }
  return table;
}

}  // namespace kelvin
