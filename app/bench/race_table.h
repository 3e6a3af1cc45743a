#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "app/bench/race.h"
#include "kelvin/report/tables/table.h"

namespace kelvin {

// One row for each race; what the columns mean is in docs/performance.md.
Table race_table(const std::vector<RaceResult>& results);

// Speed alone, for a sweep.
Table sweep_table(const std::vector<RaceResult>& results);

// What else a reader of the table has to know, a line each.
std::vector<std::string> race_notes(const std::vector<RaceResult>& results);

// All of it, with every round.
nlohmann::ordered_json race_document(const std::vector<RaceResult>& results);

}  // namespace kelvin
