#include "kelvin/report/figures/run_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "kelvin/core/text.h"
#include "kelvin/report/figures/detection_figures.h"
#include "kelvin/report/figures/figure_input.h"
#include "kelvin/report/figures/layer_figures.h"
#include "kelvin/report/figures/trajectory_figures.h"
#include "kelvin/report/page/html.h"
#include "kelvin/report/plot/svg.h"
#include "kelvin/report/tables/run_values.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;
using LineValue = std::function<double(const Json& line)>;

// Singular values below this are rounding, not spectrum.
constexpr double kSmallestRatio = 1e-6;

std::vector<PlotPoint> points_over_epochs(const FigureInput& in, const Group& group,
                                          const LineValue& value) {
  std::map<double, std::vector<double>> values;
  for (const size_t i : group.runs) {
    for (const auto& line : in.runs[i].metrics) {
      const double epoch = metric(line, "epoch");
      const double y = value(line);
      if (std::isfinite(epoch) && std::isfinite(y)) values[epoch].push_back(y);
    }
  }
  return mean_points(values);
}

// A series per group for each value; later values are dashed.
std::vector<Series> series_over_epochs(
    const FigureInput& in, const std::vector<std::pair<std::string, LineValue>>& values) {
  std::vector<Series> all;
  for (size_t g = 0; g < in.comparison.groups.size(); ++g) {
    const auto& group = in.comparison.groups[g];
    Stroke stroke = Stroke::solid;
    for (const auto& [name, value] : values) {
      auto points = points_over_epochs(in, group, value);
      if (!points.empty()) {
        all.push_back({.label = group.short_label + (name.empty() ? "" : " " + name),
                       .colour = colour_of(in, g),
                       .stroke = stroke,
                       .points = std::move(points)});
      }
      stroke = Stroke::dashed;
    }
  }
  return all;
}

LineValue of_key(const std::string& key) {
  return [key](const Json& line) { return metric(line, key); };
}

Axis epochs() { return {.label = "epoch", .is_whole = true}; }

// Definition of the solution rank in tables, less what may differ during training.
std::string rank_definition(const FigureInput& in) {
  for (const auto& run : in.runs) {
    const auto* reading = default_reading(run, {.name = "solution_rank"});
    if (reading == nullptr) continue;
    return definition_text(reading->definition,
                           {"split", "samples", "upper_bound", "bound_by_width", "curve"});
  }
  return "";
}

void add_training(const FigureInput& in, std::vector<RunFigure>& figures) {
  add_figure(
      figures,
      {.name = "loss",
       .section = "Training",
       .figure = LineFigure{.title = "Loss over training",
                            .x = epochs(),
                            .y = {.label = "cross-entropy at T"},
                            .series = series_over_epochs(
                                in, {{"train", of_key("loss")}, {"test", of_key("test_loss")}})},
       .how_to_read = "Each run minimises the cross-entropy of softmax(logits / T) at its "
                      "own temperature." +
                      seed_note(in),
       .definition = ""});
  add_figure(
      figures,
      {.name = "accuracy",
       .section = "Training",
       .figure = LineFigure{.title = "Accuracy over training",
                            .x = epochs(),
                            .y = {.label = "accuracy", .is_percent = true},
                            .series = series_over_epochs(in, {{"train", of_key("train_accuracy")},
                                                              {"test", of_key("test_accuracy")}})},
       .how_to_read = "If the curves end at different heights, compare ranks at equal training "
                      "accuracy." +
                      seed_note(in),
       .definition = ""});
}

double norm_over_t_per_sample(const Json& line) {
  const double per_sample = metric(line, "logits_norm_per_sample");
  const double share = metric(line, "logits_norm_over_t") / metric(line, "logits_norm");
  return per_sample * (std::isfinite(share) ? share : 1 / metric(line, "temperature"));
}

void add_norms(const FigureInput& in, std::vector<RunFigure>& figures) {
  add_figure(
      figures,
      {.name = "logits-norm",
       .section = "Norm and rank of the logits",
       .figure =
           LineFigure{.title = "Norm of the logits over training",
                      .x = epochs(),
                      .y = {.label = "norm per sample", .is_log = true},
                      .series = series_over_epochs(in, {{"‖M‖", of_key("logits_norm_per_sample")},
                                                        {"‖M/T‖", norm_over_t_per_sample}})},
       .how_to_read =
           "The softmax sees M/T (dashed). Divided by a high T the outputs start nearly uniform, "
           "and the network has to let its logits M (solid) grow before it can tell classes "
           "apart." +
           seed_note(in),
       .definition = definition_of(in, named("logits_norm_per_sample"), {"samples", "split"})});
}

std::vector<Series> ranks_against_accuracy(const FigureInput& in) {
  std::vector<Series> all;
  for (size_t g = 0; g < in.comparison.groups.size(); ++g) {
    bool is_first = true;
    for (const size_t i : in.comparison.groups[g].runs) {
      Series series{.label = is_first ? in.comparison.groups[g].short_label : "",
                    .detail = "seed " + std::to_string(seed_of(in.runs[i])),
                    .colour = colour_of(in, g)};
      for (const auto& line : in.runs[i].metrics) {
        const double accuracy = metric(line, "train_accuracy");
        const double rank = metric(line, "solution_rank");
        if (is_initial(line) || !std::isfinite(accuracy) || !std::isfinite(rank)) continue;
        series.points.push_back({.x = accuracy, .y = rank});
      }
      if (series.points.empty()) continue;
      all.push_back(std::move(series));
      is_first = false;
    }
  }
  return all;
}

void add_ranks(const FigureInput& in, std::vector<RunFigure>& figures) {
  add_figure(figures,
             {.name = "rank-over-training",
              .section = "Norm and rank of the logits",
              .figure = LineFigure{.title = "Rank before and after the softmax over training",
                                   .x = epochs(),
                                   .y = {.label = "rank", .is_whole = true, .low = 0.0},
                                   .series = series_over_epochs(
                                       in, {{"logits", of_key("solution_rank")},
                                            {"softmax", of_key("post_softmax_rank")}})},
              .how_to_read = "Solid: the rank of the logits (SR). Dashed: the rank of the "
                             "probabilities the softmax makes of them. A wide gap means that the "
                             "softmax supplies the rank, so that the network need not." +
                             seed_note(in),
              .definition = rank_definition(in)});

  std::vector<Guide> guides;
  if (in.comparison.equal_accuracy) {
    guides.push_back({.value = *in.comparison.equal_accuracy,
                      .label = fmt::format("{:.1f} %", 100 * *in.comparison.equal_accuracy),
                      .is_vertical = true});
  }
  add_figure(
      figures,
      {.name = "rank-against-accuracy",
       .section = "Norm and rank of the logits",
       .figure = LineFigure{.title = "Rank of the logits against training accuracy",
                            .x = {.label = "training accuracy", .is_percent = true},
                            .y = {.label = "solution rank", .is_whole = true, .low = 0.0},
                            .series = ranks_against_accuracy(in),
                            .guides = guides},
       .how_to_read =
           std::string("One line per run, one point per epoch.") +
           (guides.empty() ? ""
                           : " Curves that stay apart at the same accuracy differ in rank, not in "
                             "how far they are trained; the dotted line is the accuracy that every "
                             "run reaches, at which the table compares them."),
       .definition = rank_definition(in)});
}

bool is_default_spectrum(const Reading& reading) {
  return definition_flag(reading.definition, "shift_free", true) &&
         definition_flag(reading.definition, "bias", true) && reading.split != "train" &&
         reading.layer.empty();
}

// Position among the singular values and value relative to the first.
std::vector<Series> spectra(const FigureInput& in) {
  std::vector<Series> all;
  for (size_t g = 0; g < in.comparison.groups.size(); ++g) {
    std::map<double, std::vector<double>> values;
    for (const size_t i : in.comparison.groups[g].runs) {
      std::map<int64_t, double> spectrum;
      for (const auto& reading : in.runs[i].readings) {
        if (reading.name != "singular_value" || !reading.index || !is_default_spectrum(reading)) {
          continue;
        }
        spectrum.emplace(*reading.index, reading.value);
      }
      if (spectrum.empty()) continue;
      const double first = spectrum.begin()->second;
      double position = 1;
      for (const auto& [index, value] : spectrum) {
        const double ratio = value / first;
        if (ratio >= kSmallestRatio && std::isfinite(ratio)) values[position].push_back(ratio);
        ++position;
      }
    }
    if (values.empty()) continue;
    all.push_back({.label = in.comparison.groups[g].short_label,
                   .colour = colour_of(in, g),
                   .points = mean_points(values)});
  }
  return all;
}

std::vector<Series> ranks_over_gamma(const FigureInput& in) {
  std::vector<Series> all;
  for (size_t g = 0; g < in.comparison.groups.size(); ++g) {
    std::map<double, std::vector<double>> values;
    for (const size_t i : in.comparison.groups[g].runs) {
      for (const auto& reading : in.runs[i].readings) {
        if (reading.name != "solution_rank" || !definition_flag(reading.definition, "curve", false))
          continue;
        if (!is_default_spectrum(reading)) continue;
        const double gamma = definition_number(reading.definition, "gamma");
        if (gamma > 0 && std::isfinite(reading.value)) values[gamma].push_back(reading.value);
      }
    }
    if (values.empty()) continue;
    all.push_back({.label = in.comparison.groups[g].short_label,
                   .colour = colour_of(in, g),
                   .points = mean_points(values)});
  }
  return all;
}

void add_rank_over_gamma(const FigureInput& in, std::vector<RunFigure>& figures) {
  add_figure(
      figures,
      {.name = "rank-over-gamma",
       .section = "Norm and rank of the logits",
       .figure = LineFigure{.title = "Solution rank as a function of its threshold",
                            .x = {.label = "threshold γ", .is_log = true},
                            .y = {.label = "solution rank", .is_whole = true, .low = 0.0},
                            .series = ranks_over_gamma(in),
                            .guides = {{.value = 1e-3, .label = "γ = 10⁻³", .is_vertical = true}}},
       .how_to_read = "If one curve lies below the other for every γ, the comparison of "
                      "ranks does not hang on the choice of γ; the table uses 10⁻³." +
                      seed_note(in),
       .definition = definition_of(in,
                                   [](const Reading& reading) {
                                     return reading.name == "solution_rank" &&
                                            definition_flag(reading.definition, "curve", false) &&
                                            is_default_spectrum(reading);
                                   },
                                   {"gamma", "curve", "upper_bound", "bound_by_width"})});
}

void add_spectra(const FigureInput& in, std::vector<RunFigure>& figures) {
  add_figure(
      figures,
      {.name = "spectrum",
       .section = "Spectrum and depth at the end of training",
       .figure =
           LineFigure{.title = "Singular values of the logits",
                      .x = {.label = "position", .is_whole = true},
                      .y = {.label = "σᵢ / σ₁", .is_log = true, .low = kSmallestRatio, .high = 1.5},
                      .series = spectra(in),
                      .guides = {{.value = 1e-2, .label = "γ = 10⁻²"},
                                 {.value = 1e-3, .label = "γ = 10⁻³"},
                                 {.value = 1e-4, .label = "γ = 10⁻⁴"}}},
       .how_to_read = "The solution rank is the number of singular values above the dotted line of "
                      "its threshold γ. A cliff is a clear rank; a gentle slope makes the rank a "
                      "matter of γ." +
                      seed_note(in),
       .definition = definition_of(in, [](const Reading& reading) {
         return reading.name == "singular_value" && is_default_spectrum(reading);
       })});
}

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

// The trade-off, if the temperature is all that sets at least three groups apart.
void add_temperature_sweep(const FigureInput& in, std::vector<RunFigure>& figures) {
  constexpr size_t kFewestPoints = 3;
  const auto& groups = in.comparison.groups;
  const bool is_sweep = std::all_of(groups.begin(), groups.end(), [](const Group& group) {
    return group.temperature > 0 && group.short_label.starts_with("T = ");
  });
  if (!is_sweep || groups.size() < kFewestPoints) return;

  const Axis temperature{.label = "temperature T", .is_log = true};
  LineFigure ranks{.title = "Rank of the logits against temperature",
                   .x = temperature,
                   .y = {.label = "rank", .low = 0.0}};
  ranks.series = {series_over_temperature(in, {.name = "solution_rank"}, "at the end", 0),
                  series_over_temperature(in, {.name = kRankAtEqualAccuracy}, "equal accuracy", 2)};
  LineFigure shares{.title = "What the temperature costs and brings",
                    .x = temperature,
                    .y = {.label = "share", .is_percent = true, .low = 0.0, .high = 1.0}};
  shares.series = {series_over_temperature(in, {.name = "accuracy", .split = "test"},
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
    shares.series.push_back(series_over_temperature(in, *rho, "ρ, " + rho->ood, 5));
  }
  if (first != quantities.end()) {
    const auto& ood = first->ood;
    if (const auto auroc = shown_auroc(in, ood)) {
      shares.series.push_back(series_over_temperature(
          in, quantities[*auroc], "AUROC " + quantities[*auroc].detector + ", " + ood, 2));
    }
  }
  for (auto* figure : {&ranks, &shares}) {
    std::erase_if(figure->series, [](const Series& series) { return series.points.empty(); });
  }
  add_figure(figures,
             {.name = "rank-over-temperature",
              .section = "Over the temperature",
              .figure = std::move(ranks),
              .how_to_read = "The solution rank at the end of training and at equal training "
                             "accuracy." +
                             seed_note(in),
              .definition = rank_definition(in)});
  add_figure(
      figures,
      {.name = "trade-off",
       .section = "Over the temperature",
       .figure = std::move(shares),
       .how_to_read = "The depth that does the work (κ) and the accuracy that deep layers lose on "
                      "other data (ρ), beside test accuracy and how well other data are detected "
                      "(AUROC)." +
                      seed_note(in),
       .definition = ""});
}

}  // namespace

std::vector<RunFigure> run_figures(const std::vector<Run>& runs, const Comparison& comparison) {
  const FigureInput in{.runs = runs, .comparison = comparison};
  std::vector<RunFigure> figures;
  add_temperature_sweep(in, figures);
  add_training(in, figures);
  add_norms(in, figures);
  add_ranks(in, figures);
  add_rank_over_gamma(in, figures);
  add_trajectory_figures(in, figures);
  add_spectra(in, figures);
  add_layer_figures(in, figures);
  add_detection_figures(in, figures);
  return figures;
}

}  // namespace kelvin
