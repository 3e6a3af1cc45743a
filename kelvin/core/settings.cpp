#include "kelvin/core/settings.h"

#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

bool holds(const Value& value, const bool&) { return value.is_boolean(); }
bool holds(const Value& value, const int64_t&) { return value.is_number_integer(); }
bool holds(const Value& value, const double&) { return value.is_number(); }
bool holds(const Value& value, const std::string&) { return value.is_string(); }

template <class Element>
bool holds(const Value& value, const std::vector<Element>&) {
  if (!value.is_array()) return false;
  for (const auto& element : value) {
    if (!holds(element, Element{})) return false;
  }
  return true;
}

template <class Field>
constexpr bool kIsList = false;
template <class Element>
constexpr bool kIsList<std::vector<Element>> = true;

}  // namespace

Settings::Settings(std::string section, Values values)
    : section_(std::move(section)), values_(std::move(values)) {}

template <class Field>
void Settings::read_as(const std::string& key, const char* expected, Field& field) {
  const auto place = prefix_ + key;
  if (auto found = values_.find(place); found != values_.end()) {
    auto value = found->second;
    // Where a list is expected, a single value is a list of one.
    if (kIsList<Field> && !value.is_array()) value = Value::array({value});
    check(holds(value, field), full_name(key), ": must be ", expected, ", got ", value.dump());
    field = value.template get<Field>();
  }
  resolved_[place] = field;
}

void Settings::read(const std::string& key, bool& field) { read_as(key, "true or false", field); }
void Settings::read(const std::string& key, int64_t& field) {
  read_as(key, "a whole number", field);
}
void Settings::read(const std::string& key, double& field) { read_as(key, "a number", field); }
void Settings::read(const std::string& key, std::string& field) { read_as(key, "a text", field); }
void Settings::read(const std::string& key, std::vector<double>& field) {
  read_as(key, "a list of numbers", field);
}
void Settings::read(const std::string& key, std::vector<std::string>& field) {
  read_as(key, "a list of texts", field);
}

void Settings::read_prefixed(const std::string& prefix,
                             const std::function<void(Settings&)>& read) {
  // Keys read through the copy must be known here as well.
  Settings prefixed = *this;
  prefixed.prefix_ += prefix;
  read(prefixed);
  resolved_ = std::move(prefixed.resolved_);
}

void Settings::reject_unknown_keys() const {
  for (const auto& [key, value] : values_) {
    if (resolved_.contains(key)) continue;
    std::vector<std::string> known;
    for (const auto& [name, ignored] : resolved_) known.push_back(name);
    const auto guess = nearest_name(key, known);
    check(false, full_name(key), ": no such setting",
          guess.empty() ? "; there are: " + join(known, ", ")
                        : "; did you mean '" + full_name(guess) + "'?");
  }
}

std::string Settings::full_name(const std::string& key) const {
  return (section_.empty() ? "" : section_ + ".") + prefix_ + key;
}

}  // namespace kelvin
