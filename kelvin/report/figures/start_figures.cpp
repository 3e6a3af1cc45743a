#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "kelvin/report/figures/figures.h"
#include "kelvin/report/page/glossary.h"
#include "kelvin/report/page/html.h"
#include "kelvin/report/plot/svg.h"
#include "kelvin/report/tables/run_values.h"

namespace kelvin {
namespace {

constexpr auto kStartSection = "Over the logits norm at the start";
constexpr double kFewestTimes = 2;  // by which norms must differ to be an axis

// What the softmax sees before any step; NaN if the run did not look.
double start_norm(const Run& run) {
  const auto line = std::find_if(run.metrics.begin(), run.metrics.end(), is_initial);
  return line == run.metrics.end() ? std::numeric_limits<double>::quiet_NaN()
                                   : metric(*line, "logits_norm_over_t");
}

bool norms_differ(const FigureInput& in) {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (const auto& run : in.runs) {
    const double norm = start_norm(run);
    if (!std::isfinite(norm) || norm <= 0) continue;
    low = std::min(low, norm);
    high = std::max(high, norm);
  }
  return high > kFewestTimes * low;
}

// The names of the cases in the order of the runs; one without a name if they are not known.
std::vector<std::string> levers_of(const FigureInput& in) {
  std::vector<std::string> names;
  for (const auto& name : in.cases) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names.empty() ? std::vector<std::string>{""} : names;
}

// A point per run of the case.
Series points_of_lever(const FigureInput& in, const Quantity& quantity, const std::string& lever,
                       int64_t colour) {
  Series series{
      .label = lever.empty() ? "runs" : lever, .colour = colour, .stroke = Stroke::points_alone};
  for (const auto& group : in.comparison.groups) {
    for (const size_t i : group.runs) {
      if (i < in.cases.size() && in.cases[i] != lever) continue;
      const auto seen = observation(in.runs[i], quantity);
      const double norm = start_norm(in.runs[i]);
      if (!seen || !std::isfinite(norm)) continue;
      series.points.push_back(
          {.x = norm,
           .y = seen->value,
           .name = group.short_label + ", seed " + std::to_string(seed_of(in.runs[i]))});
    }
  }
  return series;
}

RunFigure over_start_norm(const FigureInput& in, const Quantity& quantity) {
  const bool is_fraction = term(quantity.name).is_fraction;
  LineFigure figure{.title = "Logits norm at the start and " + label_of(quantity),
                    .x = {.label = "logits norm ‖M/T‖ at step 0", .is_log = true},
                    .y = {.label = label_of(quantity), .is_percent = is_fraction}};
  if (quantity.name == "solution_rank") figure.y.low = 0.0;
  const auto levers = levers_of(in);
  for (size_t i = 0; i < levers.size(); ++i) {
    auto series = points_of_lever(in, quantity, levers[i], palette_colour(i, levers.size()));
    if (!series.points.empty()) figure.series.push_back(std::move(series));
  }
  return {.name = slug(quantity.name) + "-over-start-norm",
          .section = kStartSection,
          .figure = std::move(figure),
          .how_to_read =
              "A point per run, a colour per case of the recipe: what sets the norm. If "
              "temperature, initialisation, width and normalisation act through this norm alone, "
              "all points lie on one curve.",
          .definition = quantity.name == "solution_rank" ? rank_definition(in) : ""};
}

// SR, kappa, rho and AUROC, the last two of the same OOD data, as far as they were measured.
std::vector<Quantity> shown_over_start_norm(const FigureInput& in) {
  const auto& all = in.comparison.quantities;
  const auto first_of = [&](const char* name) {
    return std::find_if(all.begin(), all.end(),
                        [&](const Quantity& each) { return each.name == name; });
  };
  std::vector<Quantity> shown;
  for (const char* name : {"solution_rank", "kappa", "rho"}) {
    if (const auto found = first_of(name); found != all.end()) shown.push_back(*found);
  }
  const auto rho = first_of("rho");
  const auto with_ood = rho != all.end() ? rho : first_of("auroc");
  if (with_ood == all.end()) return shown;
  if (const auto auroc = shown_auroc(in, with_ood->ood)) shown.push_back(all[*auroc]);
  return shown;
}

}  // namespace

void add_start_figures(const FigureInput& in, std::vector<RunFigure>& figures) {
  if (!norms_differ(in)) return;
  for (const auto& quantity : shown_over_start_norm(in)) {
    add_figure(figures, over_start_norm(in, quantity));
  }
}

}  // namespace kelvin
