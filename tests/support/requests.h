#pragma once

#include <string>
#include <vector>

#include "kelvin/experiment/run/run.h"

namespace kelvin {

// To measure these; all that can be for none.
inline MeasureRequest request_for(const std::vector<std::string>& names) {
  MeasureRequest request;
  if (!names.empty()) request.settings.set("measure.names", names);
  return request;
}

}  // namespace kelvin
