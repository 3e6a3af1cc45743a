#include "kelvin/report/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "kelvin/core/check.h"
#include "kelvin/core/reading.h"
#include "kelvin/core/text.h"
#include "kelvin/report/figures/run_figures.h"
#include "kelvin/report/page/glossary.h"
#include "kelvin/report/page/html.h"
#include "kelvin/report/plot/svg.h"
#include "kelvin/report/tables/collapse_steps.h"
#include "kelvin/report/tables/comparison.h"
#include "kelvin/report/tables/quantity_table.h"
#include "kelvin/report/tables/run_values.h"
#include "kelvin/report/tables/verdict.h"

namespace kelvin {
namespace {

// More figures than this under one heading wait until they are asked for.
constexpr size_t kMostOpenFigures = 8;

std::string head(const std::string& title) {
  return R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="kelvin">
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='M3 13 13 3' stroke='%230068a8' stroke-width='3'/%3E%3Cpath d='M8 13h5' stroke='%23cf5200' stroke-width='3'/%3E%3C/svg%3E">
<title>)" +
         escape_html(title) + "</title>\n<style>" + figure_css() + "\n" +
         report_assets().at("page") + "</style>\n</head>\n";
}

std::string paragraph(const std::string& escaped, const std::string& classes = "") {
  return "<p" + (classes.empty() ? "" : " class=\"" + classes + "\"") + ">" + escaped + "</p>\n";
}

std::string heading(const std::string& text) { return "<h2>" + escape_html(text) + "</h2>\n"; }

std::string strong(const std::string& text) { return "<strong>" + escape_html(text) + "</strong>"; }

std::string details(const std::string& summary, const std::string& html) {
  return "<details><summary>" + escape_html(summary) + "</summary>\n" + html + "</details>\n";
}

std::string counted(size_t count, const std::string& thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

// The value all runs share, or nothing.
std::string shared_setting(const std::vector<Run>& runs, const std::vector<std::string>& keys) {
  for (const auto& key : keys) {
    std::set<std::string> values;
    for (const auto& run : runs) {
      if (run.config.has(key)) values.insert(value_text(run.config.at(key)));
    }
    if (values.size() == 1) return *values.begin();
  }
  return "";
}

std::string what_was_run(const PageInput& input, const Comparison& comparison) {
  const auto model = shared_setting(input.runs, {"model.name", "model"});
  const auto data = shared_setting(input.runs, {"data.name", "data.dataset", "dataset", "data"});
  std::string text = strong(counted(input.runs.size(), "run"));
  if (!model.empty()) text += " of " + escape_html(model);
  if (!data.empty()) text += " on " + escape_html(data);
  std::vector<std::string> groups;
  for (const auto& group : comparison.groups) {
    groups.push_back(escape_html(group.label) + " (" + counted(group.runs.size(), "seed") + ")");
  }
  return text + ": " + join(groups, comparison.groups.size() > 2 ? "; " : " against ") + ".";
}

// One fact of the summary: how a quantity of the last group compares with that of the first.
struct Fact {
  std::string name;  // of the quantity
  std::string split = "";
  std::string subject;  // stands before "falls from 19 to 12"
};

const std::vector<Fact>& facts() {
  static const std::vector<Fact> all = {
      {.name = "solution_rank", .subject = "the rank of the logits (SR)"},
      {.name = kRankAtEqualAccuracy, .subject = "the rank at equal training accuracy"},
      {.name = "logits_norm_growth", .subject = "the growth of the logits norm in training"},
      {.name = "accuracy", .split = "test", .subject = "test accuracy"},
      {.name = "kappa", .subject = "the share of layers that do the work (κ)"},
      {.name = "rho", .subject = "what the deep layers lose on other data (ρ)"},
      {.name = "auroc", .subject = "the AUROC of detecting other data"},
  };
  return all;
}

// Does not break over lines.
std::string kept_together(const std::string& text) {
  std::string html;
  for (const char letter : escape_html(text))
    html += letter == ' ' ? "&nbsp;" : std::string(1, letter);
  return html;
}

std::string mean_only(Summary summary, const Quantity& quantity) {
  summary.count = std::min<int64_t>(summary.count, 1);
  return "<strong>" + kept_together(mean_text(summary, quantity)) + "</strong>";
}

// "falls from 19 to 12" only where three seeds or more put zero outside of the interval.
std::string change_text(const SeedValues& first, const SeedValues& last, const Quantity& quantity) {
  const auto from = mean_only(first.summary, quantity);
  const auto to = mean_only(last.summary, quantity);
  const auto difference = paired_difference(first, last);
  const bool is_clear =
      difference && difference->count >= 3 && std::abs(difference->mean) > difference->half_width;
  if (is_clear) return (difference->mean < 0 ? "falls from " : "rises from ") + from + " to " + to;
  const bool has_enough = difference && difference->count >= 3;
  return "is " + from + " and " + to + (has_enough ? " (no clear difference)" : "");
}

std::string fact_text(const Fact& fact, const Comparison& comparison) {
  for (size_t i = 0; i < comparison.quantities.size(); ++i) {
    const auto& quantity = comparison.quantities[i];
    const auto& first = comparison.groups.front().measured[i];
    const auto& last = comparison.groups.back().measured[i];
    const bool is_measured = first.summary.count > 0 && last.summary.count > 0;
    if (quantity.name != fact.name || quantity.split != fact.split || !is_measured) continue;
    std::string subject = fact.subject;
    if (!quantity.detector.empty()) subject += " (" + quantity.detector + ", " + quantity.ood + ")";
    const bool is_single = comparison.groups.size() == 1;
    return escape_html(subject) + " " +
           (is_single ? "is " + mean_only(last.summary, quantity)
                      : change_text(first, last, quantity));
  }
  return "";
}

std::string facts_text(const Comparison& comparison) {
  std::vector<std::string> parts;
  for (const auto& fact : facts()) {
    if (auto text = fact_text(fact, comparison); !text.empty()) parts.push_back(std::move(text));
  }
  if (parts.empty()) return "";
  const auto& groups = comparison.groups;
  const auto start = groups.size() == 1 ? "At " + kept_together(groups[0].short_label)
                                        : "From " + kept_together(groups.front().short_label) +
                                              " to " + kept_together(groups.back().short_label);
  return start + ", " + join(parts, "; ") + ".";
}

std::string story(const Comparison& comparison) {
  std::set<double> temperatures;
  for (const auto& group : comparison.groups) {
    if (!std::isnan(group.temperature)) temperatures.insert(group.temperature);
  }
  if (temperatures.size() > 1) {
    return "The temperature T divides the logits before the softmax. At a high T the outputs start "
           "nearly uniform, and the network must let its logits grow before it can tell classes "
           "apart. The question of this page: does it then settle on fewer directions, a lower "
           "rank of its logits, and what does that cost or bring?";
  }
  return "The temperature T divides the logits before the softmax. This page shows how many "
         "directions the logits use (their rank), how they grew, and which layers do the work.";
}

std::string unfinished_notice(const std::vector<Run>& runs) {
  std::map<std::string, size_t> counts;
  for (const auto& run : runs) {
    if (run.status != RunStatus::finished) ++counts[name_of(run.status)];
  }
  if (counts.empty()) return "";
  std::vector<std::string> parts;
  for (const auto& [status, count] : counts) parts.push_back(fmt::format("{} {}", count, status));
  return paragraph("Not every run is finished (" + join(parts, ", ") + " of " +
                       std::to_string(runs.size()) +
                       "): their numbers are those of an unfinished training.",
                   "notice");
}

std::string summary_section(const PageInput& input, const Comparison& comparison) {
  std::string html = "<header>\n<h1>" + escape_html(input.title) + "</h1>\n";
  html += paragraph(what_was_run(input, comparison) + " " + facts_text(comparison), "lead");
  html += paragraph(story(comparison), "soft");
  html += unfinished_notice(input.runs);
  if (!input.command.empty()) {
    html += "<code class=\"command\">" + escape_html(input.command) + "</code>\n";
  }
  html += "<ul class=\"groups\">";
  for (size_t g = 0; g < comparison.groups.size(); ++g) {
    html += fmt::format("<li class=\"c{}\">{}</li>", palette_colour(g, comparison.groups.size()),
                        escape_html(comparison.groups[g].label));
  }
  return html + "</ul>\n</header>\n";
}

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

std::string notes_html(const std::vector<std::string>& notes) {
  std::string html = "<ul class=\"notes\">";
  for (const auto& note : notes) html += "<li>" + escape_html(note) + "</li>";
  return html + "</ul>\n";
}

std::string comparison_section(const PageInput& input, const Comparison& comparison) {
  if (comparison.quantities.empty()) return "";
  const auto is_detection = [](const Quantity& quantity) { return !quantity.detector.empty(); };
  const auto main_part = only(comparison, std::not_fn(is_detection));
  const auto detection = only(comparison, is_detection);
  std::string html = heading(comparison.groups.size() > 1 ? "Comparison" : "Results");
  if (!main_part.quantities.empty()) html += html_of(comparison_table(main_part));
  html += notes_html(comparison_notes(comparison));
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

std::string figure_html(const RunFigure& figure) {
  const auto svg = std::visit([](const auto& each) { return svg_of(each); }, figure.figure);
  const auto title = std::visit([](const auto& each) { return each.title; }, figure.figure);
  std::string html = "<figure id=\"" + slug(figure.name) + "\">\n<h3>" + escape_html(title) +
                     "</h3>\n" + svg + "<figcaption>" + escape_html(figure.how_to_read);
  if (!figure.definition.empty()) {
    html += "<small>Definition: " + escape_html(figure.definition) + "</small>";
  }
  return html + "</figcaption>\n</figure>\n";
}

std::string figure_sections(const std::vector<RunFigure>& figures) {
  std::string html;
  for (size_t start = 0; start < figures.size();) {
    size_t end = start;
    std::string section;
    while (end < figures.size() && figures[end].section == figures[start].section) {
      section += figure_html(figures[end++]);
    }
    section = "<div class=\"figures\">\n" + section + "</div>\n";
    html += heading(figures[start].section);
    html += end - start <= kMostOpenFigures ? section
                                            : details(counted(end - start, "figure"), section);
    start = end;
  }
  return html;
}

// Nested objects to "versions.torch" → text.
void flatten_into(std::map<std::string, std::string>& entries, const std::string& prefix,
                  const nlohmann::ordered_json& json) {
  for (const auto& [key, value] : json.items()) {
    const auto name = prefix.empty() ? key : prefix + "." + key;
    if (value.is_object()) {
      flatten_into(entries, name, value);
    } else {
      entries[name] = value_text(Value(value));
    }
  }
}

std::map<std::string, std::string> metadata_of(const Run& run) {
  auto metadata = run.metadata;
  metadata.erase("config");  // there is a table of settings
  std::map<std::string, std::string> entries;
  flatten_into(entries, "", metadata);
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
  std::string html;
  for (const auto& run : runs) {
    const auto text = collapse_text(collapse_steps(run));
    if (!text.empty()) html += "<li>" + escape_html(run.path.string() + ": " + text) + "</li>\n";
  }
  return html.empty() ? "" : "<ul class=\"notes\">\n" + html + "</ul>\n";
}

// Why numbers of some run do not mean what they seem to.
std::string caveat_section(const std::vector<Run>& runs) {
  std::string html;
  for (const auto& run : runs) {
    for (const auto& sentence : caveats(run.readings)) {
      html += "<li>" + escape_html(run.path.string() + ": " + sentence) + "</li>\n";
    }
  }
  return html.empty() ? ""
                      : heading("Read with care") + "<ul class=\"notes\">\n" + html + "</ul>\n";
}

// One line for each run that did not train with one config from its beginning to its end.
std::string change_notes(const std::vector<Run>& runs) {
  std::string html;
  for (const auto& run : runs) {
    for (const auto& change : changes_of(run)) {
      html += "<li>" +
              escape_html(run.path.string() + ": " + change.key + " was changed from " +
                          value_text(Value(change.from)) + " to " + value_text(Value(change.to)) +
                          " when the run was resumed") +
              "</li>\n";
    }
  }
  return html.empty() ? "" : "<ul class=\"notes\">\n" + html + "</ul>\n";
}

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

}  // namespace

std::string render_page(const PageInput& input) {
  check(!input.runs.empty(), "report: needs at least one run, got none");
  const auto comparison = compare(input.runs);
  std::string html = head(input.title) + "<body>\n<main>\n";
  html += summary_section(input, comparison);
  html += comparison_section(input, comparison);
  html += caveat_section(input.runs);
  html += verdict_section(input);
  html += figure_sections(run_figures(input.runs, comparison));
  html += run_section(input, comparison);
  html += definition_section(input, comparison);
  // The script shows what lies nearest to the pointer; without it the browser's own tooltips do.
  html += "</main>\n<div id=\"readout\" aria-hidden=\"true\"></div>\n<script>\n";
  return html + report_assets().at("readout") + "</script>\n</body>\n</html>\n";
}

}  // namespace kelvin
