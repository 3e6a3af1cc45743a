#include "kelvin/report/tables/run_difference.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "kelvin/core/text.h"
#include "kelvin/formats/toml_text.h"
#include "kelvin/report/tables/run_values.h"
#include "kelvin/report/tables/text_table.h"
#include "kelvin/runs/readings_file.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;
using Texts = std::map<std::string, std::string>;

// All digits, because values that differ must look different; an empty text is told from none.
std::string exact_text(const Value& value) {
  const bool is_word = value.is_string() && !value.get_ref<const std::string&>().empty();
  return is_word ? value.get<std::string>() : toml_text_of(value);
}

std::string metadata_text(const Json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The part of the metadata that may change what a run computes.
Texts compared_metadata_of(const Run& run) {
  Texts texts;
  const auto add = [&](const Json& object, const std::string& key) {
    if (object.is_object() && object.contains(key)) texts[key] = metadata_text(object[key]);
  };
  if (!run.metadata.is_object()) return texts;
  add(run.metadata, "version");
  add(run.metadata, "commit");
  if (run.metadata.contains("versions") && run.metadata["versions"].is_object()) {
    for (const auto& [key, value] : run.metadata["versions"].items()) {
      texts[key] = metadata_text(value);
    }
  }
  if (run.metadata.contains("machine")) add(run.metadata["machine"], "cpu");
  // What config.toml says of them is true of the end of training alone.
  for (const auto& change : changes_of(run)) {
    auto& text = texts["changed on resume"];
    text += (text.empty() ? "" : ", ") + change.key + " from " + metadata_text(change.from) +
            " to " + metadata_text(change.to);
  }
  return texts;
}

Texts compared_settings_of(const Run& run) {
  Texts texts;
  for (const auto& [key, value] : run.config.values()) texts[key] = exact_text(value);
  return texts;
}

// 1 and 1.0 are one number to every reader of a config.
bool is_same_setting(const Run& a, const Run& b, const std::string& key) {
  return a.config.has(key) && b.config.has(key) && a.config.at(key) == b.config.at(key);
}

std::string text_at(const Texts& texts, const std::string& key) {
  const auto found = texts.find(key);
  return found == texts.end() ? "" : found->second;
}

std::vector<ToldByTwo> told_by_two(const Texts& a, const Texts& b) {
  std::set<std::string> keys;
  for (const auto& texts : {a, b}) {
    for (const auto& [key, text] : texts) keys.insert(key);
  }
  std::vector<ToldByTwo> pairs;
  for (const auto& key : keys) {
    pairs.push_back({.name = key, .a = text_at(a, key), .b = text_at(b, key)});
  }
  return pairs;
}

bool is_same_value(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Name and place: what readings by several definitions share.
std::string measured_thing(const Reading& reading) {
  auto thing = reading.name;
  for (const auto& place : all_places()) thing += "\n" + place.cell(reading);
  return thing;
}

void compare_readings(const Run& a, const Run& b, bool all, RunDifference& difference) {
  std::map<std::string, double> values;
  for (const auto& reading : b.readings) {
    if (all || !reading.index) values[identity_of(reading)] = reading.value;
  }
  std::set<std::string> things;
  for (const auto& reading : a.readings) {
    if (!all && reading.index) continue;
    const bool is_default = things.insert(measured_thing(reading)).second;
    const auto found = values.find(identity_of(reading));
    if (found == values.end()) {
      ++difference.only_in_a;
      continue;
    }
    ++difference.in_common;
    const bool is_shown = all || !is_same_value(reading.value, found->second);
    if (is_shown) {
      difference.readings.push_back({.a = reading, .b = found->second, .is_default = is_default});
    }
    values.erase(found);
  }
  difference.only_in_b = static_cast<int64_t>(values.size());
}

Table told_table(const std::string& title, const std::vector<ToldByTwo>& pairs) {
  Table table{.title = title, .columns = {{"key"}, {"A"}, {"B"}}};
  for (const auto& pair : pairs) table.rows.push_back({pair.name, pair.a, pair.b});
  return table;
}

std::vector<MeasuredByTwo> by_default_definition(std::vector<MeasuredByTwo> readings) {
  std::erase_if(readings, [](const MeasuredByTwo& pair) { return !pair.is_default; });
  return readings;
}

Table readings_table(const std::vector<MeasuredByTwo>& readings, bool with_definitions) {
  constexpr int kDigits = 4;
  Table table{.title = "Readings", .columns = {{"name"}}};
  Readings of_a;
  for (const auto& pair : readings) of_a.push_back(pair.a);
  const auto places = used_places(of_a);
  for (const auto& place : places) table.columns.push_back({place.name});
  for (const char* name : {"A", "B", "difference"}) {
    table.columns.push_back({name, Alignment::right});
  }
  if (with_definitions) table.columns.push_back({"definition"});
  for (const auto& pair : readings) {
    std::vector<std::string> row = {pair.a.name};
    for (const auto& place : places) row.push_back(place.cell(pair.a));
    for (const double value : {pair.a.value, pair.b, pair.b - pair.a.value}) {
      row.push_back(short_number(value, kDigits));
    }
    if (with_definitions) row.push_back(definition_text(pair.a.definition));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// What stands where there is no table of readings.
std::string no_readings_text(const RunDifference& difference) {
  if (!difference.readings.empty()) return "no difference by default definitions";
  if (difference.in_common > 0) return "no difference";
  const bool has_any = difference.only_in_a > 0 || difference.only_in_b > 0;
  return has_any ? "none in common" : "neither run has readings";
}

std::string text_for_people(const RunDifference& difference, TableFormat format,
                            bool with_definitions, size_t width) {
  std::vector<std::string> parts;
  const auto add = [&](const Table& table, const std::string& otherwise) {
    parts.push_back(table.rows.empty() ? table.title + ": " + otherwise + "\n"
                                       : render(table, format, width));
  };
  const auto add_note = [&](const std::string& note) {
    const auto lines = wrapped_lines(note, format == TableFormat::text ? width : 0);
    parts.push_back(join(lines, "\n") + "\n");
  };
  const auto shown =
      with_definitions ? difference.readings : by_default_definition(difference.readings);
  add(told_table("Settings", difference.settings), "no difference");
  add(told_table("Metadata", difference.metadata), "no difference");
  add(readings_table(shown, with_definitions), no_readings_text(difference));
  if (const auto left_out = difference.readings.size() - shown.size(); left_out > 0) {
    add_note(
        fmt::format("Not shown: {} reading{} by other definitions; --definitions shows them, "
                    "-o json has everything.",
                    left_out, left_out == 1 ? "" : "s"));
  }
  if (const auto note = not_compared_text(difference); !note.empty()) add_note(note);
  return join(parts, "\n");
}

Table table_of_all(const RunDifference& difference) {
  Table table{.columns = {{"kind"}, {"name"}}};
  for (const auto& place : all_places()) table.columns.push_back({place.name});
  // Settings are words and numbers; aligned as numbers, those that are become ones in JSON.
  for (const char* name : {"A", "B", "difference"}) {
    table.columns.push_back({name, Alignment::right});
  }
  table.columns.push_back({"definition"});
  const auto add_told = [&](const std::string& kind, const std::vector<ToldByTwo>& pairs) {
    for (const auto& pair : pairs) {
      std::vector<std::string> row = {kind, pair.name};
      row.resize(row.size() + all_places().size());
      row.insert(row.end(), {pair.a, pair.b});
      table.rows.push_back(std::move(row));
    }
  };
  add_told("setting", difference.settings);
  add_told("metadata", difference.metadata);
  for (const auto& pair : difference.readings) {
    std::vector<std::string> row = {"reading", pair.a.name};
    for (const auto& place : all_places()) row.push_back(place.cell(pair.a));
    for (const double value : {pair.a.value, pair.b, pair.b - pair.a.value}) {
      row.push_back(fmt::format("{}", value));
    }
    row.push_back(metadata_text(pair.a.definition));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

RunDifference run_difference(const Run& a, const Run& b, bool all) {
  RunDifference difference{
      .settings = told_by_two(compared_settings_of(a), compared_settings_of(b)),
      .metadata = told_by_two(compared_metadata_of(a), compared_metadata_of(b))};
  if (!all) {
    const auto is_same_text = [](const ToldByTwo& pair) { return pair.a == pair.b; };
    std::erase_if(difference.metadata, is_same_text);
    std::erase_if(difference.settings, [&](const ToldByTwo& pair) {
      return is_same_text(pair) || is_same_setting(a, b, pair.name);
    });
  }
  compare_readings(a, b, all, difference);
  return difference;
}

std::string difference_text(const RunDifference& difference, TableFormat format,
                            bool with_definitions, size_t width) {
  return is_for_people(format) ? text_for_people(difference, format, with_definitions, width)
                               : render(table_of_all(difference), format);
}

std::string not_compared_text(const RunDifference& difference) {
  if (difference.only_in_a == 0 && difference.only_in_b == 0) return "";
  return fmt::format(
      "{} readings of A and {} of B are not compared: the other run has none by the same "
      "definition",
      difference.only_in_a, difference.only_in_b);
}

}  // namespace kelvin
