#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kelvin/report/tables/run_values.h"
#include "kelvin/report/tables/table.h"
#include "kelvin/statistics/summary.h"

namespace kelvin {

struct SeedValue {
  int64_t seed = 0;
  double value = 0;
  bool at_width_bound = false;
};

// One quantity in one group.
struct SeedValues {
  std::vector<SeedValue> seeds = {};  // by seed
  Summary summary = {};               // its count is 0 where nothing was measured
};

// Runs that differ in nothing but their seed.
struct Group {
  std::string label;              // what sets it apart: "temperature 1, lr 0.2"
  std::string short_label;        // for figures: "T = 1" if nothing but the temperature differs
  double temperature = 0;         // NaN if the runs have none
  std::vector<size_t> runs = {};  // places in the list that was compared
  std::vector<SeedValues> measured = {};  // one per quantity of the comparison
};

struct Comparison {
  std::vector<Quantity> quantities = {};
  std::vector<Group> groups = {};             // by temperature, then by label
  std::optional<double> equal_accuracy = {};  // of training; only if there are several groups
  // Runs left out because their group already has a run with the same seed:
  // counting both as independent would make the intervals too narrow.
  std::vector<size_t> repeated = {};
};

// The keys, but for the seed, whose values differ; temperature first.
std::vector<std::string> differing_keys(const std::vector<Run>& runs);

// Throws an Error for no runs.
Comparison compare(const std::vector<Run>& runs);

// `to` minus `from`, paired by seed; nothing if they share no seed.
std::optional<Summary> paired_difference(const SeedValues& from, const SeedValues& to);

// "42.0 ± 5.1", "71.3 ± 0.4 %"; without the interval for a single value.
std::string mean_text(const Summary& summary, const Quantity& quantity);
// "42", "71.3 %", with a dagger at the width bound.
std::string value_text(const SeedValue& value, const Quantity& quantity);

// For people: a row per quantity, a column per group, the difference if there are two, and the
// notes below.
Table comparison_table(const Comparison& comparison);
// For programs: a row per group and quantity with every number at full precision.
Table comparison_records(const Comparison& comparison);
// The notes a reader of the table needs (dagger, equal accuracy, interval), each a sentence.
std::vector<std::string> comparison_notes(const Comparison& comparison);

}  // namespace kelvin
