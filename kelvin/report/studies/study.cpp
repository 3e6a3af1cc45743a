#include "kelvin/report/studies/study.h"

#include <algorithm>
#include <set>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/report/page/html.h"
#include "kelvin/report/page/sections.h"
#include "kelvin/report/tables/run_values.h"
#include "kelvin/report/tables/text_table.h"

namespace kelvin {
namespace {

// Of each name the definition of its first reading, as further down pages say it.
std::string meanings(const Readings& readings) {
  std::vector<std::string> lines;
  std::set<std::string> seen;
  for (const auto& reading : readings) {
    if (!seen.insert(reading.name).second) continue;
    lines.push_back(reading.name + ": " + definition_text(reading.definition));
  }
  return heading("Definitions") +
         paragraph("Of the first reading of each name; -o json has those of all.") +
         note_list(lines);
}

}  // namespace

std::string study_text(const Study& study, TableFormat format, size_t width) {
  std::vector<std::string> parts;
  const auto add_lines = [&](const std::string& text) {
    parts.push_back(join(wrapped_lines(text, format == TableFormat::text ? width : 0), "\n") +
                    "\n");
  };
  for (const auto& table : study.tables) parts.push_back(render(table, format, width));
  for (const auto& finding : study.findings) add_lines(finding);
  return join(parts, "\n");
}

std::string study_page(const Study& study, const Readings& readings, const std::string& command) {
  check(!readings.empty(), "study: needs readings, got none");
  auto html = page_opening(study.title) + "<h1>" + escape_html(study.title) + "</h1>\n";
  for (const auto& finding : study.findings) html += paragraph(escape_html(finding));
  html += figure_sections(study.figures);
  for (auto table : study.tables) {
    if (!table.title.empty()) html += heading(table.title);
    table.title.clear();  // or it would be the caption once more
    html += html_of(table) + note_list(table.notes);
  }
  html += meanings(readings);
  if (!command.empty()) {
    html += heading("Command") + paragraph("<code>" + escape_html(command) + "</code>");
  }
  return html + page_ending();
}

bool has_entries(const Definition& definition, const Definition& with) {
  return std::all_of(with.items().begin(), with.items().end(), [&](const auto& entry) {
    const auto found = definition.find(entry.key());
    return found != definition.end() && *found == entry.value();
  });
}

Readings readings_named(const Readings& readings, const std::string& name, const Definition& with) {
  Readings found;
  std::copy_if(readings.begin(), readings.end(), std::back_inserter(found),
               [&](const Reading& reading) {
                 return reading.name == name && has_entries(reading.definition, with);
               });
  return found;
}

Reading reading_named(const Readings& readings, const std::string& name, const Definition& with) {
  const auto found = std::find_if(readings.begin(), readings.end(), [&](const Reading& reading) {
    return reading.name == name && has_entries(reading.definition, with);
  });
  check(found != readings.end(), "study: there is no reading '", name, "' with ", with.dump());
  return *found;
}

std::vector<double> numbers_under(const Readings& readings, const std::string& name,
                                  const std::string& key) {
  std::set<double> numbers;
  for (const auto& reading : readings) {
    if (reading.name != name || !reading.definition.contains(key)) continue;
    numbers.insert(reading.definition.at(key).get<double>());
  }
  return {numbers.begin(), numbers.end()};
}

std::vector<PlotPoint> points_over(const Readings& readings, const std::string& name,
                                   const std::string& key, const Definition& with) {
  std::vector<PlotPoint> points;
  for (const auto& reading : readings_named(readings, name, with)) {
    PlotPoint point{.x = reading.definition.at(key).get<double>(), .y = reading.value};
    if (reading.interval) {
      point.low = reading.interval->low;
      point.high = reading.interval->high;
    }
    points.push_back(point);
  }
  return points;
}

}  // namespace kelvin
