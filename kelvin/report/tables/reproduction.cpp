#include "kelvin/report/tables/reproduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/report/page/glossary.h"

namespace kelvin {
namespace {

constexpr auto kExpectedColumns = "case,at,reading,detector,ood,value,source";
constexpr int64_t kSeedsToConfirm = 3;

// "train.temperature>1" and the place of its sign.
size_t sign_of(const std::string& condition) { return condition.find_first_of("<>="); }

double number_of_text(const std::string& text, const std::string& where) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  check(!text.empty() && *end == '\0' && std::isfinite(number), where, ": must be a number, got '",
        text, "'");
  return number;
}

bool meets(const Run& run, const std::string& condition) {
  if (condition.empty()) return true;
  const auto sign = sign_of(condition);
  const auto key = condition.substr(0, sign);
  const auto wanted = condition.substr(sign + 1);
  if (!run.config.has(key)) return false;
  const auto& value = run.config.at(key);
  if (!value.is_number()) return condition[sign] == '=' && value_text(value) == wanted;
  const double number = value.get<double>();
  const double bound = number_of_text(wanted, condition);
  if (condition[sign] == '=') return number == bound;
  return condition[sign] == '<' ? number < bound : number > bound;
}

bool is_number_of(const ExpectedNumber& number, const Quantity& quantity) {
  return number.reading == quantity.name && quantity.split != "train" &&
         (number.detector.empty() || number.detector == quantity.detector) &&
         (number.ood.empty() || number.ood == quantity.ood);
}

bool has_runs(const std::vector<Run>& runs, const Values& wanted) {
  return std::any_of(runs.begin(), runs.end(), [&](const Run& run) {
    return std::all_of(wanted.begin(), wanted.end(), [&](const auto& entry) {
      return run.config.has(entry.first) && run.config.at(entry.first) == entry.second;
    });
  });
}

std::vector<Claim> claims_about(const std::vector<Claim>& claims, const std::vector<Run>& runs) {
  std::vector<Claim> about;
  for (const auto& claim : claims) {
    if (has_runs(runs, claim.at) && has_runs(runs, claim.against)) about.push_back(claim);
  }
  return about;
}

// Strict is where the temperature alone sets the groups apart.
std::string label_of_case(const ReproducedCase& each, const Comparison& comparison) {
  if (!each.tuned_key.empty()) return "tuned";
  const auto& groups = comparison.groups;
  const bool is_strict =
      groups.size() > 1 && std::all_of(groups.begin(), groups.end(),
                                       [](auto& g) { return g.short_label.starts_with("T = "); });
  return is_strict ? "strict" : "";
}

std::string chosen_text(const ReproducedCase& each, const Comparison& comparison) {
  if (each.tuned_key.empty()) return "";
  std::vector<std::string> parts;
  for (const auto& group : comparison.groups) {
    const auto& config = each.runs[group.runs.front()].config;
    if (!config.has(each.tuned_key)) continue;
    parts.push_back(
        short_key(each.tuned_key) + " " + value_text(config.at(each.tuned_key)) +
        (std::isnan(group.temperature) ? "" : " at T = " + short_number(group.temperature, 6)));
  }
  return join(parts, ", ");
}

// "mlp-tuned (tuned: lr 0.02 at T = 1, lr 0.1 at T = 30)"
std::string case_title(const CaseReproduction& reproduced) {
  if (reproduced.label.empty()) return reproduced.name;
  const auto label = reproduced.label + (reproduced.chosen.empty() ? "" : ": " + reproduced.chosen);
  return reproduced.name.empty() ? label : reproduced.name + " (" + label + ")";
}

CaseReproduction reproduced_case(const ReproducedCase& each, const std::vector<Claim>& claims,
                                 const std::vector<ExpectedNumber>& expected) {
  CaseReproduction result{.name = each.name, .comparison = compare(each.runs)};
  result.label = label_of_case(each, result.comparison);
  result.chosen = chosen_text(each, result.comparison);
  result.verdicts = verdicts(each.runs, claims_about(claims, each.runs));
  for (const auto& number : expected) {
    if (number.case_name.empty() || number.case_name == each.name) {
      result.expected.push_back(number);
    }
  }
  for (const auto& group : result.comparison.groups) {
    const auto first = group.runs.front();
    result.commands.push_back(first < each.commands.size() ? each.commands[first] : "");
    std::vector<std::optional<double>> numbers;
    for (const auto& quantity : result.comparison.quantities) {
      const auto found = std::find_if(
          result.expected.begin(), result.expected.end(), [&](const ExpectedNumber& number) {
            return is_number_of(number, quantity) && meets(each.runs[first], number.at);
          });
      numbers.push_back(found == result.expected.end() ? std::nullopt
                                                       : std::optional(found->value));
    }
    result.paper.push_back(std::move(numbers));
  }
  return result;
}

std::string paper_text(const std::optional<double>& value, const Quantity& quantity) {
  if (!value) return "";
  return term(quantity.name).is_fraction ? short_number(100 * *value, 4) + " %"
                                         : short_number(*value, 4);
}

std::string exact_text(double value) { return fmt::format("{}", value); }

bool has_paper(const CaseReproduction& reproduced) {
  return std::any_of(reproduced.paper.begin(), reproduced.paper.end(), [](const auto& numbers) {
    return std::any_of(numbers.begin(), numbers.end(),
                       [](const auto& number) { return number.has_value(); });
  });
}

}  // namespace

std::vector<ExpectedNumber> parse_expected(std::string_view csv, const std::string& origin) {
  std::vector<ExpectedNumber> numbers;
  std::istringstream lines{std::string(csv)};
  int64_t line_number = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto where = origin + ": line " + std::to_string(++line_number);
    if (line_number == 1) {
      check(line == kExpectedColumns, where, ": must be ", kExpectedColumns, ", is '", line, "'");
      continue;
    }
    const auto cells = split(line, ',');
    check(cells.size() == 7, where, ": must have 7 cells, has ", cells.size());
    check(cells[1].empty() || sign_of(cells[1]) != std::string::npos, where,
          ": must say which runs, as train.temperature>1, says '", cells[1], "'");
    numbers.push_back({.case_name = cells[0],
                       .at = cells[1],
                       .reading = cells[2],
                       .detector = cells[3],
                       .ood = cells[4],
                       .value = number_of_text(cells[5], where),
                       .source = cells[6]});
  }
  return numbers;
}

std::vector<CaseReproduction> reproduction(const std::vector<ReproducedCase>& cases,
                                           const std::vector<Claim>& claims,
                                           const std::vector<ExpectedNumber>& expected) {
  std::vector<CaseReproduction> all;
  for (const auto& each : cases) {
    if (!each.runs.empty()) all.push_back(reproduced_case(each, claims, expected));
  }
  return all;
}

std::string finding(const Verdict& verdict) {
  if (verdict.outcome == Outcome::not_measured) return "not measured";
  const double sign = verdict.claim.direction == "lower" ? -1 : 1;
  const auto& difference = verdict.difference;
  const bool excludes_zero =
      verdict.seeds >= kSeedsToConfirm && std::abs(difference.mean) > difference.half_width;
  const double worst = std::min(sign * difference.smallest, sign * difference.largest);
  const double best = std::max(sign * difference.smallest, sign * difference.largest);
  if (worst > 0) return excludes_zero ? "confirmed" : "direction only";
  return best < 0 && excludes_zero ? "opposite" : "not shown";
}

Table reproduction_table(const CaseReproduction& reproduced) {
  const auto& comparison = reproduced.comparison;
  const bool shows_paper = has_paper(reproduced);
  Table table{.title = case_title(reproduced), .columns = {{.name = "quantity"}}};
  for (const auto& group : comparison.groups) {
    table.columns.push_back({.name = group.short_label, .alignment = Alignment::right});
    if (shows_paper) table.columns.push_back({.name = "paper", .alignment = Alignment::right});
  }
  const bool has_difference = comparison.groups.size() == 2;
  if (has_difference)
    table.columns.push_back({.name = "difference", .alignment = Alignment::right});

  const auto plain = comparison_table(comparison);
  for (size_t i = 0; i < comparison.quantities.size(); ++i) {
    const auto& cells = plain.rows[i];
    std::vector<std::string> row = {cells[0]};
    for (size_t group = 0; group < comparison.groups.size(); ++group) {
      row.push_back(cells[1 + group]);
      if (shows_paper) {
        row.push_back(paper_text(reproduced.paper[group][i], comparison.quantities[i]));
      }
    }
    if (has_difference) row.push_back(cells.back());
    table.rows.push_back(std::move(row));
  }
  table.notes = plain.notes;
  return table;
}

Table finding_table(const CaseReproduction& reproduced) {
  Table table{.columns = {{.name = "claim"}, {.name = "finding"}, {.name = "seen"}}};
  for (const auto& verdict : reproduced.verdicts) {
    table.rows.push_back({verdict.statement, finding(verdict), verdict.sentence});
    if (!reproduced.label.empty()) table.rows.back().front() += ", " + reproduced.label;
  }
  return table;
}

Table command_table(const CaseReproduction& reproduced) {
  Table table{.columns = {{.name = "runs"}, {.name = "command"}}};
  for (size_t i = 0; i < reproduced.commands.size(); ++i) {
    table.rows.push_back({reproduced.comparison.groups[i].short_label, reproduced.commands[i]});
  }
  return table;
}

Table reproduction_records(const std::string& recipe, const std::string& scale,
                           const std::vector<CaseReproduction>& reproduced) {
  Table table;
  for (const char* name : {"recipe", "scale", "case", "comparison", "kind", "group", "name",
                           "split", "ood", "detector"}) {
    table.columns.push_back({.name = name});
  }
  for (const char* name :
       {"temperature", "seeds", "mean", "half_width", "smallest", "largest", "paper"}) {
    table.columns.push_back({.name = name, .alignment = Alignment::right});
  }
  for (const char* name : {"finding", "command"}) table.columns.push_back({.name = name});

  for (const auto& each : reproduced) {
    for (size_t g = 0; g < each.comparison.groups.size(); ++g) {
      const auto& group = each.comparison.groups[g];
      for (size_t i = 0; i < each.comparison.quantities.size(); ++i) {
        const auto& quantity = each.comparison.quantities[i];
        const auto& summary = group.measured[i].summary;
        if (summary.count == 0) continue;
        table.rows.push_back({recipe, scale, each.name, each.label, "value", group.label,
                              quantity.name, quantity.split, quantity.ood, quantity.detector,
                              std::isnan(group.temperature) ? "" : exact_text(group.temperature),
                              std::to_string(summary.count), exact_text(summary.mean),
                              summary.count > 1 ? exact_text(summary.half_width) : "",
                              exact_text(summary.smallest), exact_text(summary.largest),
                              each.paper[g][i] ? exact_text(*each.paper[g][i]) : "", "",
                              each.commands[g]});
      }
    }
    for (const auto& verdict : each.verdicts) {
      const auto& difference = verdict.difference;
      const bool is_measured = difference.count > 0;
      const auto& quantity = verdict.quantity;
      table.rows.push_back(
          {recipe, scale, each.name, each.label, "claim", verdict.statement, quantity.name,
           quantity.split, quantity.ood, quantity.detector, "", std::to_string(verdict.seeds),
           is_measured ? exact_text(difference.mean) : "",
           difference.count > 1 ? exact_text(difference.half_width) : "",
           is_measured ? exact_text(difference.smallest) : "",
           is_measured ? exact_text(difference.largest) : "", "", finding(verdict), ""});
    }
  }
  return table;
}

}  // namespace kelvin
