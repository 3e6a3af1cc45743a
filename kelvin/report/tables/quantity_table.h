#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/report/tables/comparison.h"
#include "kelvin/report/tables/table.h"

namespace kelvin {

// The solution rank by each definition it was measured with (threshold, with or
// without the common shift, with or without bias): a row per definition, a
// column per group.  No rows if nothing was measured.
Table rank_variants_table(const std::vector<Run>& runs, const Comparison& comparison);

// A reading's number for people.  A rank at its upper bound has a dagger, one that its definition
// does not call reliable a tilde.
std::string marked_value(const Reading& reading, int digits);

// A sentence for each sign that marked_value left in the cells of the table.
std::vector<std::string> notes_on_marks(const Table& table);

// Readings of a whole network for people: one row per name, one column per population (test,
// train, an OOD dataset).
struct QuantityTable {
  Table table;
  size_t left_out = 0;  // variants by other definitions than a cell's first
};

// The first reading of a name and population counts, as everywhere.
QuantityTable quantity_table(const Readings& readings);

}  // namespace kelvin
