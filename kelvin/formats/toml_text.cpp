#include "kelvin/formats/toml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
// Exceptions carry line numbers; toml++ stays inside this file because its header is large.
#include <toml++/toml.h>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxDots = 2000;

Json to_json(const toml::node& node, const std::string& origin) {
  if (const auto* table = node.as_table()) {
    // An ordered object looks for a key from its beginning; those of a table differ already.
    Json object = Json::object();
    auto& members = object.get_ref<Json::object_t&>();
    members.reserve(table->size());
    for (const auto& [key, child] : *table) {
      members.emplace_back(std::string(key.str()), to_json(child, origin));
    }
    return object;
  }
  if (const auto* array = node.as_array()) {
    Json list = Json::array();
    for (const auto& child : *array) list.push_back(to_json(child, origin));
    return list;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return whole->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  check(false, origin, ": line ", node.source().begin.line, ": dates and times are not settings");
  return {};
}

bool toml_accepts(const std::string& document) {
  try {
    static_cast<void>(toml::parse(document));
    return true;
  } catch (const toml::parse_error&) {
    return false;
  }
}

void flatten_into(Values& values, const std::string& prefix, const Json& tables,
                  const std::string& origin) {
  for (const auto& [key, value] : tables.items()) {
    const auto name = prefix.empty() ? key : prefix + "." + key;
    if (value.is_object()) {
      flatten_into(values, name, value, origin);
      continue;
    }
    if (value.is_array()) {
      for (const auto& element : value) {
        check(element.is_primitive(), origin, ": ", name, ": must be a value or a list of values");
      }
    }
    values[name] = Value(value);
  }
}

}  // namespace

Json parse_toml(std::string_view text, const std::string& origin) {
  // toml++ limits the nesting of brackets but not that of dotted keys, and nesting costs stack.
  const auto dots = std::count(text.begin(), text.end(), '.');
  check(dots <= kMaxDots, origin, ": may nest too deeply: must have at most ", kMaxDots,
        " dots, has ", dots);
  try {
    return to_json(toml::parse(text), origin);
  } catch (const toml::parse_error& error) {
    check(false, origin, ": line ", error.source().begin.line, ": ", error.description());
    throw;
  }
}

Value parse_toml_value(const std::string& text, const std::string& origin) {
  try {
    return Value(to_json(toml::parse("value = " + text), origin).at("value"));
  } catch (const toml::parse_error&) {
    const bool is_bare_word =
        !text.empty() && text.find_first_of("\"'[]{}=\n") == std::string::npos;
    // What cannot stand in a TOML text, such as bytes that are no UTF-8, could not be stored.
    check(is_bare_word && toml_accepts("value = '" + text + "'"), origin, ": cannot read '", text,
          "'");
    return text;
  }
}

Values flatten(const Json& tables, const std::string& origin) {
  Values values;
  flatten_into(values, "", tables, origin);
  return values;
}

std::string toml_text_of(const Value& value) {
  if (value.is_array()) {
    std::string list;
    for (const auto& element : value) list += (list.empty() ? "" : ", ") + toml_text_of(element);
    return "[" + list + "]";
  }
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::isnan(number)) return "nan";
    if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
    auto text = fmt::format("{}", number);  // the shortest text that reads back as the same double
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
  }
  // JSON's texts, integers and booleans are TOML's too; bytes that are not UTF-8 become U+FFFD.
  return value.dump(-1, ' ', /*ensure_ascii=*/false, Value::error_handler_t::replace);
}

}  // namespace kelvin
