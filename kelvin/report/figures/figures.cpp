#include "kelvin/report/figures/figures.h"

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/report/plot/svg.h"
#include "kelvin/report/tables/run_values.h"

namespace kelvin {
namespace {

constexpr const char* kSeedBand =
    " Lines are means over the seeds, bands reach from the smallest "
    "to the largest seed.";

}  // namespace

std::vector<RunFigure> run_figures(const std::vector<Run>& runs, const Comparison& comparison,
                                   const std::vector<std::string>& cases) {
  check(cases.empty() || cases.size() == runs.size(), "figures: must have a case for each of the ",
        runs.size(), " runs or none, got ", cases.size());
  const FigureInput in{.runs = runs, .comparison = comparison, .cases = cases};
  std::vector<RunFigure> figures;
  add_temperature_figures(in, figures);
  add_start_figures(in, figures);
  add_training_figures(in, figures);
  add_trajectory_figures(in, figures);
  add_layer_figures(in, figures);
  add_detection_figures(in, figures);
  return figures;
}

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

std::string rank_definition(const FigureInput& in) {
  for (const auto& run : in.runs) {
    const auto* reading = default_reading(run, {.name = "solution_rank"});
    if (reading == nullptr) continue;
    return definition_text(reading->definition,
                           {"split", "samples", "upper_bound", "bound_by_width", "curve"});
  }
  return "";
}

bool is_default_spectrum(const Reading& reading) {
  return definition_flag(reading.definition, "shift_free", true) &&
         definition_flag(reading.definition, "bias", true) && reading.split != "train" &&
         reading.layer.empty();
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
