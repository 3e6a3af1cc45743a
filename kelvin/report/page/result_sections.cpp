#include <functional>
#include <map>
#include <set>

#include "kelvin/core/reading.h"
#include "kelvin/core/text.h"
#include "kelvin/report/page/glossary.h"
#include "kelvin/report/page/html.h"
#include "kelvin/report/page/sections.h"
#include "kelvin/report/tables/quantity_table.h"
#include "kelvin/report/tables/run_values.h"
#include "kelvin/report/tables/verdict.h"

namespace kelvin {
namespace {

// The comparison with only the quantities that `wanted` picks.
Comparison only(const Comparison& comparison, const std::function<bool(const Quantity&)>& wanted) {
  Comparison picked = comparison;
  picked.quantities.clear();
  for (auto& group : picked.groups) group.measured.clear();
  for (size_t i = 0; i < comparison.quantities.size(); ++i) {
    if (!wanted(comparison.quantities[i])) continue;
    picked.quantities.push_back(comparison.quantities[i]);
    for (size_t g = 0; g < picked.groups.size(); ++g) {
      picked.groups[g].measured.push_back(comparison.groups[g].measured[i]);
    }
  }
  return picked;
}

Table seed_table(const Comparison& comparison) {
  Table table;
  table.columns.push_back({.name = "quantity"});
  for (const auto& group : comparison.groups) table.columns.push_back({.name = group.label});
  for (size_t i = 0; i < comparison.quantities.size(); ++i) {
    std::vector<std::string> row = {label_of(comparison.quantities[i])};
    for (const auto& group : comparison.groups) {
      std::vector<std::string> values;
      for (const auto& seed : group.measured[i].seeds) {
        values.push_back(std::to_string(seed.seed) + ": " +
                         value_text(seed, comparison.quantities[i]));
      }
      row.push_back(join(values, "   "));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string outcome_class(Outcome outcome) {
  const bool is_open = outcome == Outcome::not_shown || outcome == Outcome::not_measured;
  return is_open ? "open" : name_of(outcome);
}

// The sentence without the outcome's name, which stands beside it.
std::string reasons_of(const Verdict& verdict) {
  auto text = verdict.sentence.substr(name_of(verdict.outcome).size());
  text.erase(0, text.find_first_not_of(": "));
  return text;
}

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] += 'A' - 'a';
  return text;
}

}  // namespace

std::string comparison_section(const PageInput& input, const Comparison& comparison) {
  if (comparison.quantities.empty()) return "";
  const auto is_detection = [](const Quantity& quantity) { return !quantity.detector.empty(); };
  const auto main_part = only(comparison, std::not_fn(is_detection));
  const auto detection = only(comparison, is_detection);
  std::string html = heading(comparison.groups.size() > 1 ? "Comparison" : "Results");
  if (!main_part.quantities.empty()) html += html_of(comparison_table(main_part));
  html += "<ul class=\"notes\">";
  for (const auto& note : comparison_notes(comparison))
    html += "<li>" + escape_html(note) + "</li>";
  html += "</ul>\n";
  if (!detection.quantities.empty()) {
    html += details("Detectors: " + counted(detection.quantities.size(), "number"),
                    html_of(comparison_table(detection)));
  }
  html += details("Value of every seed", html_of(seed_table(comparison)));
  const auto variants = rank_variants_table(input.runs, comparison);
  if (variants.rows.size() > 1) {
    html += details("Solution rank by other definitions", html_of(variants));
  }
  return html;
}

std::string caveat_section(const PageInput& input) {
  std::vector<std::string> notes;
  for (const auto& run : input.runs) {
    for (const auto& sentence : caveats(run.readings)) {
      notes.push_back(run.path.string() + ": " + sentence);
    }
  }
  return notes.empty() ? "" : heading("Read with care") + note_list(notes);
}

std::string verdict_section(const PageInput& input) {
  const auto all = verdicts(input.runs, input.claims);
  if (all.empty()) return "";
  std::string html = heading("Verdicts");
  html += paragraph(
      "What was expected before the runs, judged by the difference between runs of the "
      "same seed and its 95 % interval.",
      "soft");
  html += "<ul class=\"verdicts\">\n";
  for (const auto& verdict : all) {
    html += "<li><span class=\"outcome " + outcome_class(verdict.outcome) + "\">" +
            name_of(verdict.outcome) + "</span><span>" +
            escape_html(capitalised(verdict.statement)) + ".<br><span class=\"soft\">" +
            escape_html(reasons_of(verdict)) + "</span></span></li>\n";
  }
  return html + "</ul>\n";
}

std::string definition_section(const PageInput& input, const Comparison& comparison) {
  std::set<std::string> used;
  std::map<std::string, std::string> definitions;  // of the first reading of each name
  for (const auto& run : input.runs) {
    for (const auto& reading : run.readings) {
      used.insert(reading.name);
      definitions.emplace(reading.name, definition_text(reading.definition));
    }
    if (const auto* rank = default_reading(run, {.name = "solution_rank"})) {
      definitions["solution_rank"] = definition_text(rank->definition);
    }
  }
  for (const auto& quantity : comparison.quantities) used.insert(quantity.name);
  if (used.empty()) return "";

  std::string html = heading("Definitions") + "<dl>\n";
  const auto add = [&](const Term& entry) {
    html += "<dt>" + escape_html(entry.label) + "<code>" + escape_html(entry.name) + "</code></dt>";
    html += "<dd>" + escape_html(entry.meaning);
    const auto& definition = definitions[entry.name];
    if (!definition.empty()) {
      html += " <span class=\"soft mono\">" + escape_html(definition) + "</span>";
    }
    html += "</dd>\n";
  };
  for (const auto& entry : glossary()) {
    if (used.erase(entry.name) > 0) add(entry);
  }
  for (const auto& name : used) add(term(name));
  return html + "</dl>\n";
}

}  // namespace kelvin
