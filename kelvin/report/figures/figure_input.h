#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kelvin/report/figures/run_figures.h"

namespace kelvin {

// What all figures of a report are drawn from, and what they share.
struct FigureInput {
  const std::vector<Run>& runs;
  const Comparison& comparison;
};

using ReadingFilter = std::function<bool(const Reading& reading)>;

ReadingFilter named(const std::string& name);

int64_t colour_of(const FigureInput& in, size_t group);

// That lines are means over seeds, if there are several.
std::string seed_note(const FigureInput& in);

// One point per x: the mean over the runs, with a band from the smallest to the largest.
std::vector<PlotPoint> mean_points(const std::map<double, std::vector<double>>& values);

// The definition of the first reading that fits.
std::string definition_of(const FigureInput& in, const ReadingFilter& fits,
                          const std::vector<std::string>& without = {});

// Which quantity stands for the detection of `ood`: the AUROC of NECO if it was measured, else of
// the first detector.
std::optional<size_t> shown_auroc(const FigureInput& in, const std::string& ood);

// Unless it is empty; its name becomes one that no other figure has.
void add_figure(std::vector<RunFigure>& figures, RunFigure figure);

}  // namespace kelvin
