#include "kelvin/report/tables/detection_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "kelvin/core/text.h"

namespace kelvin {

std::vector<std::string> group_members(const Reading& reading) {
  const auto members = reading.definition.find("mean_over");
  if (reading.detector.empty() || members == reading.definition.end()) return {};
  std::vector<std::string> names;
  for (const auto& member : *members) {
    if (member.is_string()) names.push_back(member.get<std::string>());
  }
  return names;
}

bool is_of_one_member(const Reading& reading) { return group_members(reading).size() == 1; }

namespace {

struct Shown {
  const char* name;
  const char* header;
};

constexpr std::array kShown = {
    Shown{"auroc", "AUROC"},
    Shown{"aupr_in", "AUPR (ID positive)"},
    Shown{"aupr_out", "AUPR (OOD positive)"},
    Shown{"fpr95_id", "FPR95 (ID positive)"},
    Shown{"fpr95_ood", "FPR95 (OOD positive)"},
};

using ByName = std::map<std::string, const Reading*>;

struct Row {
  std::string detector;
  ByName readings;

  double auroc() const {
    const auto found = readings.find("auroc");
    return found == readings.end() ? -1 : found->second->value;
  }
};

std::string percent(double share) { return fmt::format("{:.2f}", 100 * share); }

std::string cell(const ByName& readings, const char* name, ShownIntervals intervals) {
  const auto found = readings.find(name);
  if (found == readings.end()) return "";
  const auto& reading = *found->second;
  if (!reading.interval) return percent(reading.value);
  if (intervals == ShownIntervals::auroc) {
    if (reading.name != "auroc") return percent(reading.value);
    return fmt::format("{} ({:.1f} to {:.1f})", percent(reading.value), 100 * reading.interval->low,
                       100 * reading.interval->high);
  }
  return fmt::format("{} ({} to {})", percent(reading.value), percent(reading.interval->low),
                     percent(reading.interval->high));
}

// What a table is called: "far (mean over mnist, svhn)", "cifar100 (all of near)", "svhn".
std::map<std::string, std::string> shown_names(const Readings& readings) {
  std::map<std::string, std::string> names;
  for (const auto& reading : readings) {
    const auto members = group_members(reading);
    if (members.size() == 1) {
      names[members[0]] = members[0] + " (all of " + reading.ood + ")";
    } else if (!members.empty()) {
      names[reading.ood] = reading.ood + " (mean over " + join(members, ", ") + ")";
    } else {
      names.emplace(reading.ood, reading.ood);
    }
  }
  return names;
}

Table table_of(const std::string& name, const std::vector<Row>& rows, ShownIntervals intervals) {
  Table table{.title = "Against " + name + ", in %", .columns = {{"detector"}}};
  for (const auto& shown : kShown) table.columns.push_back({shown.header, Alignment::right});
  for (const auto& row : rows) {
    std::vector<std::string> cells = {row.detector};
    for (const auto& shown : kShown) cells.push_back(cell(row.readings, shown.name, intervals));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

DetectionTables detection_tables(const Readings& readings, ShownIntervals intervals) {
  DetectionTables result;
  std::vector<std::string> places;               // in the order of the readings
  std::map<std::string, std::vector<Row>> rows;  // by OOD dataset
  for (const auto& reading : readings) {
    if (reading.detector.empty()) {
      result.rest.push_back(reading);
      continue;
    }
    if (is_of_one_member(reading)) continue;
    if (!rows.contains(reading.ood)) places.push_back(reading.ood);
    auto& of_ood = rows[reading.ood];
    auto row = std::find_if(of_ood.begin(), of_ood.end(),
                            [&](const Row& each) { return each.detector == reading.detector; });
    if (row == of_ood.end()) {
      row = of_ood.insert(of_ood.end(), {.detector = reading.detector, .readings = {}});
    }
    row->readings.emplace(reading.name, &reading);
  }
  const auto names = shown_names(readings);
  for (const auto& ood : places) {
    auto& of_ood = rows.at(ood);
    std::stable_sort(of_ood.begin(), of_ood.end(),
                     [](const Row& a, const Row& b) { return a.auroc() > b.auroc(); });
    result.tables.push_back(table_of(names.at(ood), of_ood, intervals));
  }
  return result;
}

}  // namespace kelvin
