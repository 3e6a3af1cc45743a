#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace kelvin {

// What a number means: matrix, centring, threshold, precision, sample, ...
// A rank without these is not a number.  Always a JSON object.
using Definition = nlohmann::json;

// Where a number may lie, given the samples it was measured on; the definition says how it was
// found.
struct Interval {
  double low = 0;
  double high = 0;
};

// One measured number.  The optional fields say what it was measured on, where that applies.
struct Reading {
  std::string name;
  double value = 0;
  std::string layer = {};
  std::string split = {};
  std::string detector = {};
  std::string ood = {};
  std::optional<int64_t> index = {};
  std::optional<Interval> interval = {};
  Definition definition = Definition::object();
};

using Readings = std::vector<Reading>;

// The reading's fields without its definition; unset fields are left out.
nlohmann::ordered_json fields_of(const Reading& reading);

// The key of a definition under which a measure says why its number does not mean what it seems to;
// there only where that is so.
inline constexpr auto kCaveat = "caveat";

// What has to be known before the readings are believed, one sentence each: what measures said
// themselves, ranks that are as large as the samples allow, detection worse than chance.  Of
// several readings of one name and place only the first is looked at, as it is the one shown.
std::vector<std::string> caveats(const Readings& readings);

}  // namespace kelvin
