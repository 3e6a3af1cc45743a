#include "kelvin/report/tables/collapse_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kelvin/report/tables/run_values.h"

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

struct Fit {
  int64_t step = 0;
  std::optional<double> rank = {};
};

std::optional<Fit> first_fit(const Run& run) {
  for (const auto& line : run.metrics) {
    const double step = metric(line, "step");
    if (!std::isfinite(step) || !(metric(line, "train_accuracy") >= 1)) continue;
    const double rank = metric(line, "solution_rank");
    return Fit{.step = static_cast<int64_t>(step),
               .rank = std::isfinite(rank) ? std::optional(rank) : std::nullopt};
  }
  return std::nullopt;
}

std::optional<int64_t> last_step(const Run& run) {
  std::optional<int64_t> last;
  for (const auto& line : run.metrics) {
    const double step = metric(line, "step");
    if (std::isfinite(step)) last = std::max(last.value_or(0), static_cast<int64_t>(step));
  }
  return last;
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

// Ends in a comma; empty if the rank was not measured.
std::string rank_text(const CollapseSteps& steps) {
  if (steps.rank_settled) {
    return "rank within one of its last from step " + std::to_string(*steps.rank_settled) + " on, ";
  }
  return steps.rank_at_end ? "rank never more than one above its last, " : "";
}

template <typename Number>
std::string step_cell(const std::optional<Number>& number) {
  return number ? fmt::format("{}", *number) : "";
}

}  // namespace

CollapseSteps collapse_steps(const Run& run) {
  const auto ranks = ranks_of(run);
  CollapseSteps steps{
      .rank_settled = settled_step(ranks), .sampled = sampled_images(run), .last = last_step(run)};
  if (const auto fit = first_fit(run)) {
    steps.fitted = fit->step;
    steps.rank_at_fit = fit->rank;
  }
  if (!ranks.empty()) steps.rank_at_end = ranks.back().rank;
  return steps;
}

std::string collapse_text(const CollapseSteps& steps) {
  if (!steps.rank_settled && !steps.fitted) return "";
  const auto images = "all " + (steps.sampled ? std::to_string(*steps.sampled) + " " : "") +
                      "sampled training images right";
  return rank_text(steps) +
         (steps.fitted ? images + " at step " + std::to_string(*steps.fitted) : "never " + images);
}

Table collapse_table(const std::vector<Run>& runs) {
  Table table{.columns = {{.name = "run"}}};
  for (const char* name :
       {"steps", "fitted_step", "collapse_step", "rank_at_fit", "rank_at_end", "sampled_images"}) {
    table.columns.push_back({.name = name, .alignment = Alignment::right});
  }
  for (const auto& run : runs) {
    const auto steps = collapse_steps(run);
    table.rows.push_back({run.path.string(), step_cell(steps.last), step_cell(steps.fitted),
                          step_cell(steps.rank_settled), step_cell(steps.rank_at_fit),
                          step_cell(steps.rank_at_end), step_cell(steps.sampled)});
  }
  return table;
}

}  // namespace kelvin
