#pragma once

#include <string>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/report/tables/table.h"

namespace kelvin {

// Readings of layers for people: one row per layer, one column per name, a few columns per table,
// and what each column means below.
struct LayerTables {
  std::vector<Table> tables;
  std::vector<std::string> meanings;  // "name: definition", what all layers have in common
  Readings rest;                      // readings that are not of a layer, or a single one is
  size_t left_out;                    // variants by other definitions than a column's first
};

// The first reading of a name and layer counts, as everywhere; signs are those of marked_value.
LayerTables layer_tables(const Readings& readings);

}  // namespace kelvin
