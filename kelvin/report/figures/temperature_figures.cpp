#include <algorithm>

#include "kelvin/report/figures/figures.h"
#include "kelvin/report/plot/svg.h"
#include "kelvin/report/tables/run_values.h"

namespace kelvin {
namespace {

constexpr auto kTemperatureSection = "Over the temperature";

Axis temperatures() { return {.label = "temperature T", .is_log = true}; }

// One quantity against the temperature, a point per group.
Series series_over_temperature(const FigureInput& in, const Quantity& quantity,
                               const std::string& label, int64_t colour) {
  Series series{.label = label, .colour = colour};
  const auto& quantities = in.comparison.quantities;
  const auto place = std::find(quantities.begin(), quantities.end(), quantity);
  if (place == quantities.end()) return series;
  for (const auto& group : in.comparison.groups) {
    const auto& summary = group.measured[static_cast<size_t>(place - quantities.begin())].summary;
    if (summary.count == 0) continue;
    series.points.push_back({.x = group.temperature,
                             .y = summary.mean,
                             .low = summary.smallest,
                             .high = summary.largest});
  }
  return series;
}

void drop_empty(std::vector<Series>& all) {
  std::erase_if(all, [](const Series& series) { return series.points.empty(); });
}

RunFigure rank_over_temperature(const FigureInput& in) {
  LineFigure figure{.title = "Rank of the logits against temperature",
                    .x = temperatures(),
                    .y = {.label = "rank", .low = 0.0}};
  figure.series = {
      series_over_temperature(in, {.name = "solution_rank"}, "at the end", 0),
      series_over_temperature(in, {.name = kRankAtEqualAccuracy}, "equal accuracy", 2)};
  drop_empty(figure.series);
  return {.name = "rank-over-temperature",
          .section = kTemperatureSection,
          .figure = std::move(figure),
          .how_to_read =
              "The solution rank at the end of training and at equal training "
              "accuracy." +
              seed_note(in),
          .definition = rank_definition(in)};
}

RunFigure trade_off(const FigureInput& in) {
  LineFigure figure{.title = "What the temperature costs and brings",
                    .x = temperatures(),
                    .y = {.label = "share", .is_percent = true, .low = 0.0, .high = 1.0}};
  figure.series = {series_over_temperature(in, {.name = "accuracy", .split = "test"},
                                           "test accuracy", kNeutralColour),
                   series_over_temperature(in, {.name = "kappa"}, "κ", 0)};
  // Both of the same OOD data: the first that ρ is known of, or else the first of all.
  const auto& quantities = in.comparison.quantities;
  const auto first_of = [&](const char* name) {
    return std::find_if(quantities.begin(), quantities.end(),
                        [&](const Quantity& each) { return each.name == name; });
  };
  const auto rho = first_of("rho");
  const auto first = rho != quantities.end() ? rho : first_of("auroc");
  if (rho != quantities.end()) {
    figure.series.push_back(series_over_temperature(in, *rho, "ρ, " + rho->ood, 5));
  }
  if (first != quantities.end()) {
    const auto& ood = first->ood;
    if (const auto auroc = shown_auroc(in, ood)) {
      figure.series.push_back(series_over_temperature(
          in, quantities[*auroc], "AUROC " + quantities[*auroc].detector + ", " + ood, 2));
    }
  }
  drop_empty(figure.series);
  return {.name = "trade-off",
          .section = kTemperatureSection,
          .figure = std::move(figure),
          .how_to_read =
              "The depth that does the work (κ) and the accuracy that deep layers lose on "
              "other data (ρ), beside test accuracy and how well other data are detected "
              "(AUROC)." +
              seed_note(in),
          .definition = ""};
}

// Whether the temperature is all that sets at least three groups apart.
bool is_sweep(const FigureInput& in) {
  constexpr size_t kFewestPoints = 3;
  const auto& groups = in.comparison.groups;
  return groups.size() >= kFewestPoints &&
         std::all_of(groups.begin(), groups.end(), [](const Group& group) {
           return group.temperature > 0 && group.short_label.starts_with("T = ");
         });
}

}  // namespace

void add_temperature_figures(const FigureInput& in, std::vector<RunFigure>& figures) {
  if (!is_sweep(in)) return;
  for (const auto figure : {rank_over_temperature, trade_off}) add_figure(figures, figure(in));
}

}  // namespace kelvin
