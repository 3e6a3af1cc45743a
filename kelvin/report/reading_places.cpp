#include "kelvin/report/reading_places.h"

#include <algorithm>

namespace kelvin {

const std::array<PlaceColumn, 5>& all_places() {
  static constexpr std::array<PlaceColumn, 5> kPlaces = {{
      {"layer", [](const Reading& reading) { return reading.layer; }},
      {"split", [](const Reading& reading) { return reading.split; }},
      {"detector", [](const Reading& reading) { return reading.detector; }},
      {"ood", [](const Reading& reading) { return reading.ood; }},
      {"index",
       [](const Reading& reading) { return reading.index ? std::to_string(*reading.index) : ""; }},
  }};
  return kPlaces;
}

std::vector<PlaceColumn> used_places(const Readings& readings) {
  std::vector<PlaceColumn> used;
  for (const auto& place : all_places()) {
    const bool is_used = std::any_of(readings.begin(), readings.end(), [&](const Reading& reading) {
      return !place.cell(reading).empty();
    });
    if (is_used) used.push_back(place);
  }
  return used;
}

}  // namespace kelvin
