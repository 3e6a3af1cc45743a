#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>

#include "kelvin/report/figures/figures.h"
#include "kelvin/report/tables/run_values.h"

namespace kelvin {
namespace {

constexpr auto kTrainingSection = "Training";
constexpr auto kLogitsSection = "Norm and rank of the logits";

using Json = nlohmann::ordered_json;
using LineValue = std::function<double(const Json& line)>;

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

RunFigure loss(const FigureInput& in) {
  const std::string of_classes =
      "Each run minimises the cross-entropy of softmax(logits / T) at its own temperature.";
  const std::string of_views =
      "Each run minimises the cross-entropy of telling an image's other view from views of other "
      "images, at its own temperature: losses at different T cannot be compared.";
  return {.name = "loss",
          .section = kTrainingSection,
          .figure = LineFigure{.title = "Loss over training",
                               .x = epochs(),
                               .y = {.label = "cross-entropy at T"},
                               .series = series_over_epochs(
                                   in, {{"train", of_key("loss")}, {"test", of_key("test_loss")}})},
          .how_to_read = (compares_views(in.runs) ? of_views : of_classes) + seed_note(in),
          .definition = ""};
}

RunFigure view_accuracy(const FigureInput& in) {
  return {.name = "view-accuracy",
          .section = kTrainingSection,
          .figure = LineFigure{.title = "Views told over training",
                               .x = epochs(),
                               .y = {.label = "share of views", .is_percent = true},
                               .series = series_over_epochs(
                                   in, {{"train", of_key("train_view_accuracy")},
                                        {"test", of_key("test_view_accuracy")}})},
          .how_to_read =
              "A view is told if its nearest candidate is the other view of the same image. It is "
              "no accuracy of classes: that is the probes'." +
              seed_note(in),
          .definition = ""};
}

RunFigure accuracy(const FigureInput& in) {
  return {
      .name = "accuracy",
      .section = kTrainingSection,
      .figure = LineFigure{.title = "Accuracy over training",
                           .x = epochs(),
                           .y = {.label = "accuracy", .is_percent = true},
                           .series = series_over_epochs(in, {{"train", of_key("train_accuracy")},
                                                             {"test", of_key("test_accuracy")}})},
      .how_to_read =
          "If the curves end at different heights, compare ranks at equal training "
          "accuracy." +
          seed_note(in),
      .definition = ""};
}

double norm_over_t_per_sample(const Json& line) {
  const double per_sample = metric(line, "logits_norm_per_sample");
  const double ratio = metric(line, "logits_norm_over_t") / metric(line, "logits_norm");
  return per_sample * (std::isfinite(ratio) ? ratio : 1 / metric(line, "temperature"));
}

RunFigure logits_norm(const FigureInput& in) {
  const std::string of_classes =
      "The softmax sees M/T (dashed). Divided by a high T the outputs start nearly uniform, "
      "and the network has to let its logits M (solid) grow before it can tell classes "
      "apart.";
  const std::string of_views =
      "M are the embeddings. Where they are normalised, the softmax sees their cosines over T, "
      "which do not grow with the norm.";
  return {.name = "logits-norm",
          .section = kLogitsSection,
          .figure = LineFigure{.title = "Norm of the logits over training",
                               .x = epochs(),
                               .y = {.label = "norm per sample", .is_log = true},
                               .series = series_over_epochs(
                                   in, {{"‖M‖", of_key("logits_norm_per_sample")},
                                        {"‖M/T‖", norm_over_t_per_sample}})},
          .how_to_read = (compares_views(in.runs) ? of_views : of_classes) + seed_note(in),
          .definition = definition_of(in, named("logits_norm_per_sample"), {"samples", "split"})};
}

RunFigure rank_over_training(const FigureInput& in) {
  const bool views = compares_views(in.runs);
  const std::string of_classes =
      "Solid: the rank of the logits (SR). Dashed: the rank of the probabilities the softmax makes "
      "of them. A wide gap means that the softmax supplies the rank, so that the network need not.";
  const std::string of_views = "The rank (SR) of the embeddings, without each one's mean.";
  return {.name = "rank-over-training",
          .section = kLogitsSection,
          .figure = LineFigure{.title = views ? "Rank of the embeddings over training"
                                              : "Rank before and after the softmax over training",
                               .x = epochs(),
                               .y = {.label = "rank", .is_whole = true, .low = 0.0},
                               .series = series_over_epochs(
                                   in, {{"logits", of_key("solution_rank")},
                                        {"softmax", of_key("post_softmax_rank")}})},
          .how_to_read = (views ? of_views : of_classes) + seed_note(in),
          .definition = rank_definition(in)};
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

RunFigure rank_against_accuracy(const FigureInput& in) {
  std::vector<Guide> guides;
  if (in.comparison.equal_accuracy) {
    guides.push_back({.value = *in.comparison.equal_accuracy,
                      .label = fmt::format("{:.1f} %", 100 * *in.comparison.equal_accuracy),
                      .is_vertical = true});
  }
  return {
      .name = "rank-against-accuracy",
      .section = kLogitsSection,
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
      .definition = rank_definition(in)};
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

RunFigure rank_over_gamma(const FigureInput& in) {
  return {
      .name = "rank-over-gamma",
      .section = kLogitsSection,
      .figure = LineFigure{.title = "Solution rank as a function of its threshold",
                           .x = {.label = "threshold γ", .is_log = true},
                           .y = {.label = "solution rank", .is_whole = true, .low = 0.0},
                           .series = ranks_over_gamma(in),
                           .guides = {{.value = 1e-3, .label = "γ = 10⁻³", .is_vertical = true}}},
      .how_to_read =
          "If one curve lies below the other for every γ, the comparison of "
          "ranks does not hang on the choice of γ; the table uses 10⁻³." +
          seed_note(in),
      .definition = definition_of(in,
                                  [](const Reading& reading) {
                                    return reading.name == "solution_rank" &&
                                           definition_flag(reading.definition, "curve", false) &&
                                           is_default_spectrum(reading);
                                  },
                                  {"gamma", "curve", "upper_bound", "bound_by_width"})};
}

}  // namespace

void add_training_figures(const FigureInput& in, std::vector<RunFigure>& figures) {
  for (const auto figure : {loss, accuracy, view_accuracy, logits_norm, rank_over_training,
                            rank_against_accuracy, rank_over_gamma}) {
    add_figure(figures, figure(in));
  }
}

}  // namespace kelvin
