#include <algorithm>
#include <cmath>
#include <map>

#include "kelvin/core/text.h"
#include "kelvin/report/page/html.h"
#include "kelvin/report/page/sections.h"
#include "kelvin/report/tables/collapse_steps.h"
#include "kelvin/report/tables/run_values.h"

namespace kelvin {
namespace {

// Nested objects to "versions.torch" → text.
void flatten_metadata(std::map<std::string, std::string>& entries, const std::string& prefix,
                      const nlohmann::ordered_json& json) {
  for (const auto& [key, value] : json.items()) {
    const auto name = prefix.empty() ? key : prefix + "." + key;
    if (value.is_object()) {
      flatten_metadata(entries, name, value);
    } else {
      entries[name] = value_text(Value(value));
    }
  }
}

std::map<std::string, std::string> metadata_of(const Run& run) {
  auto metadata = run.metadata;
  metadata.erase("config");  // there is a table of settings
  std::map<std::string, std::string> entries;
  flatten_metadata(entries, "", metadata);
  return entries;
}

std::map<std::string, std::string> settings_of(const Run& run) {
  std::map<std::string, std::string> entries;
  for (const auto& [key, value] : run.config.values()) entries[key] = value_text(value);
  return entries;
}

// A row per key: the value that all runs have, or each run's own.
Table entries_table(const std::vector<Run>& runs, const std::string& what,
                    std::map<std::string, std::string> (*entries_of)(const Run&)) {
  std::map<std::string, std::vector<std::string>> values;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const auto& [key, value] : entries_of(runs[i])) {
      auto& row = values[key];
      row.resize(runs.size());
      row[i] = value;
    }
  }
  Table table{.title = "", .columns = {{.name = what}, {.name = "value"}}, .rows = {}};
  for (const auto& [key, row] : values) {
    const bool is_shared = std::all_of(row.begin(), row.end(),
                                       [&](const std::string& value) { return value == row[0]; });
    table.rows.push_back({key, is_shared ? row[0] : join(row, " · ")});
  }
  return table;
}

std::string first_of(const std::map<std::string, std::string>& entries,
                     const std::vector<std::string>& keys) {
  for (const auto& key : keys) {
    if (const auto found = entries.find(key); found != entries.end()) return found->second;
  }
  return "–";
}

// Time from the start of the run to its last line of metrics.
std::string duration_of(const Run& run) {
  double longest = -1;
  for (const auto& line : run.metrics) {
    const double seconds = metric(line, "seconds");
    if (std::isfinite(seconds)) longest = std::max(longest, seconds);
  }
  return longest < 0 ? "–" : short_duration(longest);
}

std::string last_epoch_of(const Run& run) {
  const double epoch = run.metrics.empty() ? NAN : metric(run.metrics.back(), "epoch");
  return std::isfinite(epoch) ? short_number(epoch) : "–";
}

// One line for each run whose rank came down or whose sampled training images were all right.
std::string collapse_notes(const std::vector<Run>& runs) {
  std::vector<std::string> notes;
  for (const auto& run : runs) {
    const auto text = collapse_text(collapse_steps(run));
    if (!text.empty()) notes.push_back(run.path.string() + ": " + text);
  }
  return note_list(notes);
}

// One line for each run that did not train with one config from its beginning to its end.
std::string change_notes(const std::vector<Run>& runs) {
  std::vector<std::string> notes;
  for (const auto& run : runs) {
    for (const auto& change : changes_of(run)) {
      notes.push_back(run.path.string() + ": " + change.key + " was changed from " +
                      value_text(Value(change.from)) + " to " + value_text(Value(change.to)) +
                      " when the run was resumed");
    }
  }
  return note_list(notes);
}

}  // namespace

std::string run_section(const PageInput& input, const Comparison& comparison) {
  Table table;
  for (const char* name : {"folder", "group", "status"}) table.columns.push_back({.name = name});
  for (const char* name : {"seed", "epochs", "time", "threads"}) {
    table.columns.push_back({.name = name, .alignment = Alignment::right});
  }
  table.columns.push_back({.name = "commit"});
  std::map<size_t, std::string> group_of;
  for (const auto& group : comparison.groups) {
    for (const size_t i : group.runs) group_of[i] = group.label;
  }
  for (size_t i = 0; i < input.runs.size(); ++i) {
    const auto& run = input.runs[i];
    const auto metadata = metadata_of(run);
    table.rows.push_back({run.path.string(),
                          group_of.contains(i) ? group_of[i] : "left out: repeats a seed",
                          name_of(run.status), std::to_string(seed_of(run)), last_epoch_of(run),
                          duration_of(run), first_of(metadata, {"threads", "versions.threads"}),
                          first_of(metadata, {"commit", "kelvin.commit", "versions.commit"})});
  }
  std::string html =
      heading("Runs") + html_of(table) + change_notes(input.runs) + collapse_notes(input.runs);
  const auto wrapped = [](const Table& entries) {
    return "<div class=\"wrap\">" + html_of(entries) + "</div>";
  };
  html += details("Settings", wrapped(entries_table(input.runs, "setting", settings_of)));
  const auto metadata = entries_table(input.runs, "entry", metadata_of);
  if (!metadata.rows.empty()) html += details("Machine, versions, data", wrapped(metadata));
  return html;
}

}  // namespace kelvin
