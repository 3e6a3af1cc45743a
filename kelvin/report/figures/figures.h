#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kelvin/report/plot/figure.h"
#include "kelvin/report/plot/heat_map.h"
#include "kelvin/report/tables/comparison.h"

namespace kelvin {

// A figure of a report with what its reader needs.
struct RunFigure {
  std::string name;     // "solution-rank-over-training": its file, unique in the report
  std::string section;  // the heading it stands under
  std::variant<LineFigure, HistogramFigure, HeatMapFigure> figure;
  std::string how_to_read;  // one or two sentences
  std::string definition;   // "gamma 0.001, shift_free true, ..."; may be empty
};

// Every figure the runs have data for, in the order of the report.  `cases` are those of a recipe
// that the runs belong to, one for each; empty if that is not known.
std::vector<RunFigure> run_figures(const std::vector<Run>& runs, const Comparison& comparison,
                                   const std::vector<std::string>& cases = {});

// What all figures of a report are drawn from.
struct FigureInput {
  const std::vector<Run>& runs;
  const Comparison& comparison;
  std::vector<std::string> cases = {};  // of each run, or empty
};

// The figures by what they are about, a file for each; its last function lists them.  To add a
// figure, write a function that returns a RunFigure and list it there.

// Over the temperature, if it is all that sets at least three groups apart.
void add_temperature_figures(const FigureInput& in, std::vector<RunFigure>& figures);
// Over the norm of the logits before the first step, all runs together, if it differs.
void add_start_figures(const FigureInput& in, std::vector<RunFigure>& figures);
// Over the epochs: loss, accuracy, norm and rank of the logits; and the rank by its threshold.
void add_training_figures(const FigureInput& in, std::vector<RunFigure>& figures);
// Over the steps: alignment, ranks of layers, gradients and logits, and how OOD data lie to the
// classes, as far as the runs' trajectories have them.
void add_trajectory_figures(const FigureInput& in, std::vector<RunFigure>& figures);
// At the end of training: the spectrum of the logits, and over the layers accuracies of probes,
// ranks, alignment and gradients.
void add_layer_figures(const FigureInput& in, std::vector<RunFigure>& figures);
// How OOD data are told apart: scores and ROC curves of a few detectors, and detection against
// generalisation over the temperature.
void add_detection_figures(const FigureInput& in, std::vector<RunFigure>& figures);

// What figures share.

// Adds it unless it is empty; its name becomes one that no other figure has.
void add_figure(std::vector<RunFigure>& figures, RunFigure figure);

int64_t colour_of(const FigureInput& in, size_t group);

// That lines are means over seeds, if there are several.
std::string seed_note(const FigureInput& in);

// One point per x: the mean over the runs, with a band from the smallest to the largest.
std::vector<PlotPoint> mean_points(const std::map<double, std::vector<double>>& values);

using ReadingFilter = std::function<bool(const Reading& reading)>;

ReadingFilter named(const std::string& name);

// The definition of the first reading that fits.
std::string definition_of(const FigureInput& in, const ReadingFilter& fits,
                          const std::vector<std::string>& without = {});

// Definition of the solution rank in tables, less what may differ during training.
std::string rank_definition(const FigureInput& in);

// Whether a singular value or rank is of the logits as tables count them: of the test split, bias
// included, without each sample's mean over the classes.
bool is_default_spectrum(const Reading& reading);

// Which quantity stands for the detection of `ood`: the AUROC of NECO if it was measured, else of
// the first detector.
std::optional<size_t> shown_auroc(const FigureInput& in, const std::string& ood);

}  // namespace kelvin
