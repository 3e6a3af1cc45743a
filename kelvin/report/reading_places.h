#pragma once

#include <array>
#include <string>
#include <vector>

#include "kelvin/core/reading.h"

namespace kelvin {

// Where a reading was taken, as a column of a table: its layer, split, detector, ...
struct PlaceColumn {
  const char* name;
  std::string (*cell)(const Reading&);
};

const std::array<PlaceColumn, 5>& all_places();

// Those in which some reading has something to show.
std::vector<PlaceColumn> used_places(const Readings& readings);

}  // namespace kelvin
