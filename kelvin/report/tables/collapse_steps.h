#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kelvin/report/tables/table.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {

// Neural collapse belongs to the terminal phase of training, when every training sample is right
// already.  Whether the rank of the logits collapses before that, a run's metrics tell, as far as
// they were taken.
struct CollapseSteps {
  // The first step at which all training images are right, of those that metrics are of.
  std::optional<int64_t> fitted = {};
  // The step from which on the solution rank stays within one of its last value; none if it never
  // was more than one above that, so that nothing came down.
  std::optional<int64_t> rank_settled = {};
  // How many training images metrics are of, if the run says so.
  std::optional<int64_t> sampled = {};
  // The last step that metrics tell of.
  std::optional<int64_t> last = {};
  std::optional<double> rank_at_fit = {};
  std::optional<double> rank_at_end = {};
};

CollapseSteps collapse_steps(const Run& run);

// "rank within one of its last from step 40 on, all 1000 sampled training images right at step
// 120"; empty if the rank did not come down and the images were never all right.
std::string collapse_text(const CollapseSteps& steps);

// For scripts, a row per run: when its sampled training images were all right and when its rank had
// come down.  A cell is empty where it never happened or was not measured.
Table collapse_table(const std::vector<Run>& runs);

}  // namespace kelvin
