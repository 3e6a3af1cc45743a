#include "kelvin/runs/config.h"

#include <algorithm>
#include <map>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/text.h"
#include "kelvin/formats/toml_text.h"

namespace kelvin {

Config Config::parse(std::string_view toml, const std::string& origin) {
  return Config(flatten(parse_toml(toml, origin), origin));
}

Config Config::load(const std::filesystem::path& path) {
  return parse(read_file(path), path.string());
}

void Config::apply_override(const std::string& assignment) {
  const auto equals = assignment.find('=');
  check(equals != std::string::npos && equals > 0, "'", assignment, "': must be key=value");
  const auto key = assignment.substr(0, equals);
  values_[key] = parse_toml_value(assignment.substr(equals + 1), key);
}

void Config::merge(const Config& other) {
  for (const auto& [key, value] : other.values_) values_[key] = value;
}

Settings Config::section(const std::string& name) const {
  Values inside;
  for (const auto& [key, value] : values_) {
    const auto dot = key.rfind('.');
    const auto section = dot == std::string::npos ? "" : key.substr(0, dot);
    if (section == name) inside[name.empty() ? key : key.substr(dot + 1)] = value;
  }
  return {name, inside};
}

void Config::reject_unknown_sections(const std::vector<std::string>& known) const {
  for (const auto& [key, value] : values_) {
    const auto dot = key.rfind('.');
    if (dot == std::string::npos) continue;
    const auto section = key.substr(0, dot);
    if (std::find(known.begin(), known.end(), section) != known.end()) continue;
    const auto guess = nearest_name(section, known);
    check(false, key, ": no section '", section, "'",
          guess.empty() ? "; there are: " + join(known, ", ") : "; did you mean '" + guess + "'?");
  }
}

const Value& Config::at(const std::string& key) const {
  auto found = values_.find(key);
  check(found != values_.end(), key, ": not set");
  return found->second;
}

std::string Config::to_toml() const {
  std::string text;
  for (const auto& [key, value] : values_) {
    if (key.find('.') == std::string::npos) text += key + " = " + toml_text_of(value) + "\n";
  }
  std::map<std::string, std::string> sections;
  for (const auto& [key, value] : values_) {
    const auto dot = key.rfind('.');
    if (dot == std::string::npos) continue;
    sections[key.substr(0, dot)] += key.substr(dot + 1) + " = " + toml_text_of(value) + "\n";
  }
  for (const auto& [section, lines] : sections) {
    text += (text.empty() ? "[" : "\n[") + section + "]\n" + lines;
  }
  return text;
}

}  // namespace kelvin
