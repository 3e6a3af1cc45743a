#include "kelvin/report/equal_accuracy.h"

#include <algorithm>
#include <cmath>

namespace kelvin {
namespace {

std::optional<double> best_accuracy(const Run& run) {
  std::optional<double> best;
  for (const auto& line : run.metrics) {
    const double accuracy = metric(line, "train_accuracy");
    if (is_initial(line) || !std::isfinite(accuracy)) continue;
    best = std::max(best.value_or(accuracy), accuracy);
  }
  return best;
}

}  // namespace

std::optional<double> common_accuracy(const std::vector<Run>& runs) {
  std::optional<double> common;
  for (const auto& run : runs) {
    if (const auto best = best_accuracy(run)) common = std::min(common.value_or(*best), *best);
  }
  return common;
}

std::optional<Observation> rank_at_accuracy(const Run& run, double accuracy) {
  for (const auto& line : run.metrics) {
    if (is_initial(line) || !(metric(line, "train_accuracy") >= accuracy)) continue;
    const double rank = metric(line, "solution_rank");
    if (!std::isfinite(rank)) return std::nullopt;
    return Observation{.value = rank};
  }
  return std::nullopt;
}

}  // namespace kelvin
