#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "kelvin/core/text.h"
#include "kelvin/report/page/html.h"
#include "kelvin/report/page/sections.h"
#include "kelvin/report/plot/svg.h"
#include "kelvin/report/tables/run_values.h"

namespace kelvin {
namespace {

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

std::string story(const std::vector<Run>& runs, const Comparison& comparison) {
  if (compares_views(runs)) {
    return "No classes are trained: the loss tells an image's other view from views of other "
           "images, by a softmax of their similarities over the temperature T. What tables call "
           "logits are the embeddings that are compared. The question of this page: on how many "
           "directions do they settle, and what do probes find in the layers below?";
  }
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

}  // namespace

std::string summary_section(const PageInput& input, const Comparison& comparison) {
  std::string html = "<header>\n<h1>" + escape_html(input.title) + "</h1>\n";
  html += paragraph(what_was_run(input, comparison) + " " + facts_text(comparison), "lead");
  html += paragraph(story(input.runs, comparison), "soft");
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

}  // namespace kelvin
