#include "kelvin/report/definition_text.h"

#include <algorithm>

#include "kelvin/core/text.h"
#include "kelvin/report/run_values.h"

namespace kelvin {

std::string definition_text(const Definition& definition, const std::vector<std::string>& without) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : definition.items()) {
    if (std::find(without.begin(), without.end(), key) != without.end()) continue;
    parts.push_back(key + " " + value_text(value));
  }
  return join(parts, ", ");
}

}  // namespace kelvin
