#pragma once

#include <string>
#include <variant>
#include <vector>

#include "kelvin/report/plot/figure.h"
#include "kelvin/report/tables/comparison.h"

namespace kelvin {

// A figure of a report with what its reader needs.
struct RunFigure {
  std::string name;     // "solution-rank-over-training": its file, unique in the report
  std::string section;  // the heading it stands under
  std::variant<LineFigure, HistogramFigure> figure;
  std::string how_to_read;  // one or two sentences
  std::string definition;   // "gamma 0.001, shift_free true, ..."; may be empty
};

// Every figure the runs have data for, in the order of the report.
std::vector<RunFigure> run_figures(const std::vector<Run>& runs, const Comparison& comparison);

}  // namespace kelvin
