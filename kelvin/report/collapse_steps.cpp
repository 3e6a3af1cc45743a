#include "kelvin/report/collapse_steps.h"

#include <algorithm>
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

std::optional<int64_t> count_in(const Run& run, const char* key) {
  if (!run.config.has(key) || !run.config.at(key).is_number_integer()) return std::nullopt;
  const auto count = run.config.at(key).get<int64_t>();
  return count > 0 ? std::optional(count) : std::nullopt;
}

// Of a training split that is smaller all images are looked at.
std::optional<int64_t> sampled_images(const Run& run) {
  const auto sampled = count_in(run, "measure.epoch_samples");
  const auto all = count_in(run, "data.train_samples");
  return sampled && all ? std::min(sampled, all) : sampled;
}

}  // namespace

CollapseSteps collapse_steps(const Run& run) {
  return {.fitted = first_fitted_step(run),
          .rank_settled = settled_step(ranks_of(run)),
          .sampled = sampled_images(run)};
}

std::string collapse_text(const CollapseSteps& steps) {
  if (!steps.rank_settled) return "";
  const auto images = "all " + (steps.sampled ? std::to_string(*steps.sampled) + " " : "") +
                      "sampled training images right";
  return "rank within one of its last from step " + std::to_string(*steps.rank_settled) + " on, " +
         (steps.fitted ? images + " at step " + std::to_string(*steps.fitted) : "never " + images);
}

}  // namespace kelvin
