#include <fmt/format.h>

#include <cmath>

#include "kelvin/core/text.h"
#include "kelvin/report/plot/svg.h"
#include "kelvin/report/studies/study.h"

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

}  // namespace

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
