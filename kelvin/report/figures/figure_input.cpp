#include "kelvin/report/figures/figure_input.h"

#include <algorithm>

#include "kelvin/report/plot/svg.h"
#include "kelvin/report/tables/run_values.h"

namespace kelvin {
namespace {

constexpr const char* kSeedBand =
    " Lines are means over the seeds, bands reach from the smallest "
    "to the largest seed.";

}  // namespace

ReadingFilter named(const std::string& name) {
  return [name](const Reading& reading) { return reading.name == name; };
}

int64_t colour_of(const FigureInput& in, size_t group) {
  return palette_colour(group, in.comparison.groups.size());
}

std::string seed_note(const FigureInput& in) {
  const bool has_seeds = std::any_of(in.comparison.groups.begin(), in.comparison.groups.end(),
                                     [](const Group& group) { return group.runs.size() > 1; });
  return has_seeds ? kSeedBand : "";
}

std::vector<PlotPoint> mean_points(const std::map<double, std::vector<double>>& values) {
  std::vector<PlotPoint> points;
  for (const auto& [x, ys] : values) {
    const auto summary = summarise(ys);
    points.push_back({.x = x, .y = summary.mean, .low = summary.smallest, .high = summary.largest});
  }
  return points;
}

std::string definition_of(const FigureInput& in, const ReadingFilter& fits,
                          const std::vector<std::string>& without) {
  for (const auto& run : in.runs) {
    for (const auto& reading : run.readings) {
      if (fits(reading)) return definition_text(reading.definition, without);
    }
  }
  return "";
}

std::optional<size_t> shown_auroc(const FigureInput& in, const std::string& ood) {
  const auto& quantities = in.comparison.quantities;
  std::optional<size_t> chosen;
  for (size_t i = 0; i < quantities.size(); ++i) {
    if (quantities[i].name != "auroc" || quantities[i].ood != ood) continue;
    if (!chosen || quantities[i].detector == "neco") chosen = i;
  }
  return chosen;
}

void add_figure(std::vector<RunFigure>& figures, RunFigure figure) {
  if (auto* lines = std::get_if<LineFigure>(&figure.figure)) {
    if (lines->series.empty()) return;
    lines->description = figure.how_to_read;
  } else {
    std::get<HistogramFigure>(figure.figure).description = figure.how_to_read;
  }
  const auto name = figure.name;
  for (int64_t count = 2;
       std::any_of(figures.begin(), figures.end(),
                   [&](const RunFigure& other) { return other.name == figure.name; });
       ++count) {
    figure.name = name + "-" + std::to_string(count);
  }
  figures.push_back(std::move(figure));
}

}  // namespace kelvin
