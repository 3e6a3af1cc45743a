#pragma once

#include <string>
#include <vector>

#include "kelvin/core/reading.h"

namespace kelvin {

// The key of a definition under which a measure says why its number does not mean what it seems to;
// there only where that is so.
inline constexpr auto kCaveat = "caveat";

// What has to be known before the readings are believed, one sentence each: what measures said
// themselves, ranks that are as large as the samples allow, detection worse than chance.  Of
// several readings of one name and place only the first is looked at, as it is the one shown.
std::vector<std::string> caveats(const Readings& readings);

}  // namespace kelvin
