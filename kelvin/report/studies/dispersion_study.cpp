#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kelvin/core/text.h"
#include "kelvin/report/plot/svg.h"
#include "kelvin/report/studies/study.h"
#include "kelvin/statistics/summary.h"

namespace kelvin {
namespace {

Definition bound_of(double spread, const char* bound, const char* side) {
  return {{"spread", spread}, {"bound", bound}, {"side", side}};
}

// By lemma 2.1 and by the sharp bounds, a row for each length.
Table bounds_table(const Readings& readings, double spread) {
  Table table{.title = "Weights that logits of spread " + short_number(spread) + " allow",
              .columns = {{"n", Alignment::right},
                          {"lemma, low", Alignment::right},
                          {"sharp, low", Alignment::right},
                          {"1 / n", Alignment::right},
                          {"sharp, high", Alignment::right},
                          {"lemma, high", Alignment::right},
                          {"entropy at least", Alignment::right},
                          {"ln n", Alignment::right}}};
  for (const double n : numbers_under(readings, "weight_bound", "n")) {
    const auto cell = [&](const char* bound, const char* side) {
      auto with = bound_of(spread, bound, side);
      with["n"] = n;
      return short_number(reading_named(readings, "weight_bound", with).value, 3);
    };
    const auto& entropy = reading_named(readings, "entropy_bound", {{"spread", spread}, {"n", n}});
    table.rows.push_back({fmt::format("{:.0f}", n), cell("lemma", "low"), cell("sharp", "low"),
                          short_number(1 / n, 3), cell("sharp", "high"), cell("lemma", "high"),
                          fmt::format("{:.3f}", entropy.value),
                          fmt::format("{:.3f}", std::log(n))});
  }
  return table;
}

RunFigure top_weight_figure(const Readings& readings, const std::vector<double>& spreads) {
  LineFigure figure{.title = "Largest weight that a spread of logits allows",
                    .x = {.label = "number of logits n", .is_log = true},
                    .y = {.label = "weight", .is_log = true}};
  for (size_t i = 0; i < spreads.size(); ++i) {
    const auto colour = palette_colour(i, spreads.size());
    figure.series.push_back({.label = "spread " + short_number(spreads[i]),
                             .colour = colour,
                             .points = points_over(readings, "weight_bound", "n",
                                                   bound_of(spreads[i], "sharp", "high"))});
  }
  figure.guides = {{.value = 0.5, .label = "one half"}};
  return {.name = "top-weight-bound",
          .section = "Over the number of logits",
          .figure = std::move(figure),
          .how_to_read = "No softmax of logits with this spread has a weight above the line.",
          .definition = ""};
}

RunFigure entropy_figure(const Readings& readings, const std::vector<double>& spreads) {
  LineFigure figure{.title = "Entropy that a spread of logits forces",
                    .x = {.label = "number of logits n", .is_log = true},
                    .y = {.label = "entropy in nats", .low = 0.0}};
  for (size_t i = 0; i < spreads.size(); ++i) {
    figure.series.push_back(
        {.label = "spread " + short_number(spreads[i]),
         .colour = palette_colour(i, spreads.size()),
         .points = points_over(readings, "entropy_bound", "n", {{"spread", spreads[i]}})});
  }
  Series uniform{.label = "ln n", .colour = kNeutralColour, .stroke = Stroke::dashed};
  for (const double n : numbers_under(readings, "entropy_bound", "n")) {
    uniform.points.push_back({.x = n, .y = std::log(n)});
  }
  figure.series.push_back(std::move(uniform));
  return {.name = "entropy-bound",
          .section = "Over the number of logits",
          .figure = std::move(figure),
          .how_to_read =
              "No softmax of logits with this spread has an entropy below the line; "
              "ln n is that of equal weights.",
          .definition = ""};
}

// Of trained heads, means over the networks but for the largest of all.
Table heads_table(const Readings& readings) {
  Table table{.title = "Heads trained with softmax",
              .columns = {{"n", Alignment::right},
                          {"mean spread", Alignment::right},
                          {"largest", Alignment::right},
                          {"spectral bound", Alignment::right},
                          {"largest weight, mean", Alignment::right},
                          {"allowed", Alignment::right},
                          {"entropy, mean", Alignment::right},
                          {"ln n", Alignment::right},
                          {"beyond a bound", Alignment::right}}};
  for (const double n : numbers_under(readings, "logit_spread", "n")) {
    const auto values = [&](const char* name, Definition with) {
      with["n"] = n;
      with["trained_with"] = "softmax";
      std::vector<double> found;
      for (const auto& reading : readings_named(readings, name, with)) {
        found.push_back(reading.value);
      }
      return summarise(found);
    };
    const Definition own = {{"attention", "softmax"}};
    table.rows.push_back(
        {fmt::format("{:.0f}", n),
         fmt::format("{:.2f}", values("logit_spread", {{"statistic", "mean over sets"}}).mean),
         fmt::format("{:.2f}", values("logit_spread", {{"statistic", "largest of a set"}}).largest),
         fmt::format("{:.1f}", values("logit_spread_bound", {}).mean),
         fmt::format("{:.4f}", values("attention_top_weight", own).mean),
         fmt::format("{:.4f}", values("attention_top_weight_bound", {}).largest),
         fmt::format("{:.2f}", values("attention_entropy_nats", own).mean),
         fmt::format("{:.2f}", std::log(n)),
         fmt::format("{:.0f}", values("dispersion_violations", {}).mean)});
  }
  table.notes = {
      "Spread: of the scores of a set. Spectral bound: 2 sigma_max(Q) sigma_max(K) |y| max |x| "
      "over "
      "the root of the width. Allowed: the largest weight that the largest spread allows. Beyond a "
      "bound: sets with a weight or a spread beyond theirs."};
  return table;
}

}  // namespace

Study heads_study(const Readings& readings) {
  Study study{.title = "Dispersion of trained heads"};
  const auto lengths = readings_named(readings, "dispersion_length");
  double last = 0;
  for (const auto& length : lengths) last = std::max(last, length.value);
  double violations = 0;
  double sets = 0;
  for (const auto& reading : readings_named(readings, "dispersion_violations")) {
    violations += reading.value;
    sets += reading.definition.at("sets").get<double>();
  }
  study.findings = {
      fmt::format("{} of {} sets have weights beyond what the spread of their scores allows, or "
                  "scores that spread beyond the spectral norms of Q and K.",
                  short_number(violations), short_number(sets, 9)),
      fmt::format(
          "By the largest spread of any set no weight can be above one half from n = {} on.",
          short_number(std::ceil(last), 6))};
  study.tables = {heads_table(readings)};
  return study;
}

Study dispersion_study(const Readings& readings) {
  const auto spreads = numbers_under(readings, "dispersion_length", "spread");
  Study study{.title = "Dispersion: what a spread of logits allows a softmax to do"};
  for (const double spread : spreads) {
    const auto& length = reading_named(readings, "dispersion_length", {{"spread", spread}});
    study.findings.push_back(
        fmt::format("Spread {} at T = {}: no weight can be above one half from n = {} on (1 + "
                    "exp(spread / T)).",
                    short_number(spread), length.definition.at("temperature").dump(),
                    short_number(std::ceil(length.value), 6)));
    study.tables.push_back(bounds_table(readings, spread));
  }
  study.figures = {top_weight_figure(readings, spreads), entropy_figure(readings, spreads)};
  return study;
}

}  // namespace kelvin
