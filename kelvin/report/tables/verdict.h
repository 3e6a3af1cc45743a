#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kelvin/report/tables/run_values.h"
#include "kelvin/report/tables/table.h"
#include "kelvin/runs/recipe.h"
#include "kelvin/statistics/summary.h"

namespace kelvin {

// An undertrained network has a low rank as well.  So ranks are also compared
// along the trajectories, where all runs had the same training accuracy.

// The largest training accuracy that every run reaches after its
// initialisation; runs without metrics do not count.
std::optional<double> common_accuracy(const std::vector<Run>& runs);

// SR at the run's first epoch with at least that training accuracy.
std::optional<Observation> rank_at_accuracy(const Run& run, double accuracy);

enum class Outcome {
  holds,         // the 95 % interval of the paired difference lies on the claimed side
  seen,          // as claimed in every seed, but fewer than three seeds
  not_shown,     // anything in between
  contradicted,  // the interval lies on the other side
  not_measured,  // no seed has both values
};

std::string name_of(Outcome outcome);

struct Verdict {
  Claim claim;
  Quantity quantity;
  std::string context = {};  // what the compared runs have in common, if the claim leaves that open
  Outcome outcome = Outcome::not_measured;
  int64_t seeds = 0;          // with both values
  int64_t seeds_holding = 0;  // of these, as claimed
  Summary difference = {};    // at minus against, paired by seed; count 0 if not measured
  std::string statement;      // the claim in words
  std::string sentence;       // "holds in 3 of 3 seeds: 42 ± 5 lower"
};

// One verdict per claim and per quantity it fits (each OOD set, each detector).
// Runs are paired by seed.
std::vector<Verdict> verdicts(const std::vector<Run>& runs, const std::vector<Claim>& claims);

Table verdict_table(const std::vector<Verdict>& verdicts);

}  // namespace kelvin
