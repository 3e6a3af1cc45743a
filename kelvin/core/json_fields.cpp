#include "kelvin/core/json_fields.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

// A value for a message: in ASCII, and no more of it than a line has room for.
std::string shown(const Json& value) {
  constexpr size_t kMost = 60;
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  auto text = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

// How deep brackets are nested, those within texts left out.
int64_t nesting_of(std::string_view text) {
  int64_t depth = 0;
  int64_t deepest = 0;
  bool is_in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (is_in_text) {
      if (letter == '\\') ++i;
      is_in_text = letter != '"';
    } else if (letter == '"') {
      is_in_text = true;
    } else if (letter == '[' || letter == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (letter == ']' || letter == '}') {
      --depth;
    }
  }
  return deepest;
}

bool is_whole(const Json& value) {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (value.is_number_unsigned()) return value.get<uint64_t>() <= kMost;
  return value.is_number_integer();
}

}  // namespace

Json parse_json_object(std::string_view text, const std::string& origin) {
  constexpr int64_t kDeepest = 64;
  const auto nesting = nesting_of(text);
  check(nesting <= kDeepest, origin, ": nests too deeply: must have at most ", kDeepest,
        " brackets within each other, has ", nesting);
  auto object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  check(object.is_object(), origin, ": not a JSON object");
  return object;
}

Json load_json_object(const std::filesystem::path& path) {
  return parse_json_object(read_file(path), path.string());
}

double number_or_nan(const Json& value, const std::string& origin) {
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  check(value.is_number(), origin, ": must be a number or null, is ", shown(value));
  return value.get<double>();
}

JsonFields::JsonFields(const Json& object, std::string origin)
    : object_(object), origin_(std::move(origin)) {
  check(object.is_object(), origin_, ": must be a JSON object, is ", shown(object));
}

std::string JsonFields::place_of(const std::string& key) const { return origin_ + ": " + key; }

const Json& JsonFields::at(const std::string& key) const {
  const auto found = object_.find(key);
  check(found != object_.end(), place_of(key), ": is missing");
  return *found;
}

void JsonFields::read(const std::string& key, bool& field) const {
  const auto& value = at(key);
  check(value.is_boolean(), place_of(key), ": must be true or false, is ", shown(value));
  field = value.get<bool>();
}

void JsonFields::read(const std::string& key, int64_t& field) const {
  const auto& value = at(key);
  check(is_whole(value), place_of(key), ": must be a whole number, is ", shown(value));
  field = value.get<int64_t>();
}

void JsonFields::read(const std::string& key, double& field) const {
  const auto& value = at(key);
  check(value.is_number(), place_of(key), ": must be a number, is ", shown(value));
  field = value.get<double>();
}

void JsonFields::read(const std::string& key, std::string& field) const {
  const auto& value = at(key);
  check(value.is_string(), place_of(key), ": must be a text, is ", shown(value));
  field = value.get<std::string>();
}

void JsonFields::read(const std::string& key, std::map<std::string, int64_t>& field) const {
  const JsonFields own(object(key), place_of(key));
  field.clear();
  for (const auto& [name, value] : own.object_.items()) own.read(name, field[name]);
}

double JsonFields::number_or_nan(const std::string& key) const {
  return kelvin::number_or_nan(at(key), place_of(key));
}

const Json& JsonFields::list(const std::string& key) const {
  const auto& value = at(key);
  check(value.is_array(), place_of(key), ": must be a list, is ", shown(value));
  return value;
}

const Json& JsonFields::object(const std::string& key) const {
  const auto& value = at(key);
  check(value.is_object(), place_of(key), ": must be an object, is ", shown(value));
  return value;
}

std::string JsonFields::text_or_empty(const std::string& key) const {
  return has(key) ? text(key) : "";
}

}  // namespace kelvin
