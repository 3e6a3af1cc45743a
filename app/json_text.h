#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace kelvin {

// JSON for stdout.  Paths and strangers' names need not be UTF-8, of which JSON is made: bytes that
// are none become U+FFFD.
inline std::string json_text(const nlohmann::ordered_json& json, int indent = -1) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace kelvin
