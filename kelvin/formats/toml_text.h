#pragma once

#include <string>
#include <string_view>

#include "kelvin/core/settings.h"

namespace kelvin {

// The document as JSON: tables become objects.  A syntax error becomes an Error
// that names `origin` and the line.
nlohmann::ordered_json parse_toml(std::string_view text, const std::string& origin);

// One value: 3, 0.1, true, "text", [1, 2], nan; a bare word is a text.
Value parse_toml_value(const std::string& text, const std::string& origin);

// Nested tables to full names: {"train": {"lr": 1}} becomes "train.lr".
Values flatten(const nlohmann::ordered_json& tables, const std::string& origin);

std::string toml_text_of(const Value& value);

}  // namespace kelvin
