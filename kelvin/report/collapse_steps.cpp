#include "kelvin/report/collapse_steps.h"

#include <cmath>
#include <vector>

#include "kelvin/report/run_values.h"

namespace kelvin {
namespace {

struct RankAtStep {
  int64_t step = 0;
  double rank = 0;
};

// Only the lines that have both.
std::vector<RankAtStep> ranks_of(const Run& run) {
  std::vector<RankAtStep> ranks;
  for (const auto& line : run.metrics) {
    const double step = metric(line, "step");
    const double rank = metric(line, "solution_rank");
    if (!std::isfinite(step) || !std::isfinite(rank)) continue;
    ranks.push_back({.step = static_cast<int64_t>(step), .rank = rank});
  }
  return ranks;
}

std::optional<int64_t> first_fitted_step(const Run& run) {
  for (const auto& line : run.metrics) {
    const double step = metric(line, "step");
    if (std::isfinite(step) && metric(line, "train_accuracy") >= 1) {
      return static_cast<int64_t>(step);
    }
  }
  return std::nullopt;
}

std::optional<int64_t> settled_step(const std::vector<RankAtStep>& ranks) {
  if (ranks.empty()) return std::nullopt;
  const double last = ranks.back().rank;
  bool was_higher = false;
  std::optional<int64_t> settled;
  for (const auto& [step, rank] : ranks) {
    was_higher |= rank > last + 1;
    if (std::abs(rank - last) > 1) {
      settled.reset();
    } else if (!settled) {
      settled = step;
    }
  }
  return was_higher ? settled : std::nullopt;
}

}  // namespace

CollapseSteps collapse_steps(const Run& run) {
  return {.fitted = first_fitted_step(run), .rank_settled = settled_step(ranks_of(run))};
}

std::string collapse_text(const CollapseSteps& steps) {
  if (!steps.rank_settled) return "";
  return "rank within one of its last from step " + std::to_string(*steps.rank_settled) + " on, " +
         (steps.fitted ? "all training samples right at step " + std::to_string(*steps.fitted)
                       : std::string("never all training samples right"));
}

}  // namespace kelvin
