#pragma once

#include <string>
#include <vector>

#include "kelvin/core/statistics.h"
#include "kelvin/report/run_values.h"
#include "kelvin/report/table.h"
#include "kelvin/runs/recipe.h"

namespace kelvin {

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
