#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kelvin/report/tables/comparison.h"
#include "kelvin/report/tables/verdict.h"
#include "kelvin/runs/recipe.h"

namespace kelvin {

// A number that a paper prints.
struct ExpectedNumber {
  std::string case_name;  // of the recipe; empty: of all cases
  std::string at;         // which of its runs: "train.temperature>1", also with = or <
  std::string reading;
  std::string detector;  // empty: any
  std::string ood;       // empty: any, as where the paper does not say
  double value = 0;      // shares as fractions, as readings have them
  std::string source;    // "Table 1"
};

// A line of a file of recipes/expected/ each: case,at,reading,detector,ood,value,source.  Throws an
// Error that names `origin` and the line.
std::vector<ExpectedNumber> parse_expected(std::string_view csv, const std::string& origin);

// The runs of one case of a recipe, and what makes them.
struct ReproducedCase {
  std::string name;            // empty if the recipe has no cases
  std::string tuned_key = {};  // "train.lr" if that was chosen for each temperature
  std::vector<Run> runs = {};
  std::vector<std::string> commands = {};  // of each run; equal for runs that differ in the seed
  int64_t missing = 0;                     // runs that were planned and are not there
};

// What a recipe shows: each case compared for itself, because nobody asks how a network on CIFAR-10
// differs from another on CIFAR-100.
struct CaseReproduction {
  std::string name;
  std::string label = {};   // "strict" (only T differs), "tuned", or empty for others
  std::string chosen = {};  // of a tuned case: "lr 0.02 at T = 1, lr 0.1 at T = 30"
  Comparison comparison;
  std::vector<std::string> commands = {};  // of each group of the comparison
  std::vector<Verdict> verdicts = {};
  std::vector<ExpectedNumber> expected = {};                   // of this case
  std::vector<std::vector<std::optional<double>>> paper = {};  // by group, then by quantity
};

// A case without runs gives none.
std::vector<CaseReproduction> reproduction(const std::vector<ReproducedCase>& cases,
                                           const std::vector<Claim>& claims,
                                           const std::vector<ExpectedNumber>& expected);

// The paper's word for what was found: "confirmed" (at least three seeds, each as claimed, and the
// 95 % interval of the paired difference excludes zero), "direction only" (each seed as claimed),
// "opposite" (each seed the other way, and the interval excludes zero), "not shown", "not
// measured".
std::string finding(const Verdict& verdict);

// For people: a row per quantity; a column per group, with the paper's number beside it.
Table reproduction_table(const CaseReproduction& reproduced);
// A row per claim: what was found, and by how much.
Table finding_table(const CaseReproduction& reproduced);
// A row per group: the command that makes its runs.
Table command_table(const CaseReproduction& reproduced);

// For programs: a row per case, group and quantity, and one per claim.
Table reproduction_records(const std::string& recipe, const std::string& scale,
                           const std::vector<CaseReproduction>& reproduced);

}  // namespace kelvin
