#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "kelvin/core/text.h"
#include "kelvin/report/figures/figures.h"
#include "kelvin/report/page/html.h"
#include "kelvin/report/tables/run_values.h"

namespace kelvin {
namespace {

constexpr auto kLayerSection = "Spectrum and depth at the end of training";

// Singular values below this are rounding, not spectrum.
constexpr double kSmallestRatio = 1e-6;

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

RunFigure logits_spectrum(const FigureInput& in) {
  return {
      .name = "spectrum",
      .section = kLayerSection,
      .figure =
          LineFigure{.title = "Singular values of the logits",
                     .x = {.label = "position", .is_whole = true},
                     .y = {.label = "σᵢ / σ₁", .is_log = true, .low = kSmallestRatio, .high = 1.5},
                     .series = spectra(in),
                     .guides = {{.value = 1e-2, .label = "γ = 10⁻²"},
                                {.value = 1e-3, .label = "γ = 10⁻³"},
                                {.value = 1e-4, .label = "γ = 10⁻⁴"}}},
      .how_to_read =
          "The solution rank is the number of singular values above the dotted line of "
          "its threshold γ. A cliff is a clear rank; a gentle slope makes the rank a "
          "matter of γ." +
          seed_note(in),
      .definition = definition_of(in, [](const Reading& reading) {
        return reading.name == "singular_value" && is_default_spectrum(reading);
      })};
}

bool is_of_layers(const Reading& reading, const std::string& name, const std::string& ood) {
  return reading.name == name && reading.ood == ood && !reading.layer.empty() && !reading.index &&
         std::isfinite(reading.value);
}

// In the order in which the runs have them.
std::vector<std::string> layers_with(const FigureInput& in, const std::string& name) {
  std::vector<std::string> layers;
  for (const auto& run : in.runs) {
    for (const auto& reading : run.readings) {
      if (reading.name != name || reading.layer.empty()) continue;
      if (std::find(layers.begin(), layers.end(), reading.layer) == layers.end()) {
        layers.push_back(reading.layer);
      }
    }
  }
  return layers;
}

// The first reading of a name and a layer is the default one.
std::vector<PlotPoint> layer_points(const FigureInput& in, const Group& group,
                                    const std::vector<std::string>& layers, const std::string& name,
                                    const std::string& ood = "") {
  std::map<double, std::vector<double>> values;
  for (const size_t i : group.runs) {
    std::set<std::string> seen;
    for (const auto& reading : in.runs[i].readings) {
      if (!is_of_layers(reading, name, ood) || !seen.insert(reading.layer).second) continue;
      const auto place = std::find(layers.begin(), layers.end(), reading.layer) - layers.begin();
      values[static_cast<double>(place)].push_back(reading.value);
    }
  }
  return mean_points(values);
}

// The share of the last layer's accuracy that the runs' effective depth was counted with.  None if
// no run has one with the logits as the last layer, or if they differ in it.
std::optional<double> kappa_threshold(const FigureInput& in, const std::vector<size_t>& runs) {
  std::set<double> thresholds;
  for (const size_t i : runs) {
    for (const auto& reading : in.runs[i].readings) {
      const auto& definition = reading.definition;
      const double threshold = definition_number(definition, "threshold");
      if (reading.name != "kappa" || std::isnan(threshold)) continue;
      if (definition.contains("last_layer") && definition["last_layer"] != "logits") continue;
      thresholds.insert(threshold);
      break;  // the first is the default one
    }
  }
  return thresholds.size() == 1 ? std::optional(*thresholds.begin()) : std::nullopt;
}

// The first layer that does as well as the last one.
Mark effective_depth(const std::vector<PlotPoint>& points, double threshold, int64_t colour) {
  const auto first = std::find_if(points.begin(), points.end(), [&](const PlotPoint& point) {
    return point.y >= threshold * points.back().y;
  });
  return {.x = first->x, .y = first->y, .label = "κ", .colour = colour};
}

// What the rings are, of groups with these thresholds.
std::string ring_text(const std::set<double>& thresholds) {
  if (thresholds.empty()) return "";
  const auto share = thresholds.size() == 1 ? short_number(100 * *thresholds.begin()) + " %"
                                            : std::string("the share that its definition names");
  return " The ring is the first layer that reaches " + share +
         " of the last one (the effective depth κ): after it the network repeats itself.";
}

void add_probes(const FigureInput& in, std::vector<RunFigure>& figures) {
  const auto layers = layers_with(in, "probe_accuracy");
  std::set<std::string> oods;
  for (const auto& run : in.runs) {
    for (const auto& reading : run.readings) {
      if (reading.name == "probe_accuracy" && !reading.ood.empty()) oods.insert(reading.ood);
    }
  }
  if (oods.empty()) oods.insert("");

  for (const auto& ood : oods) {
    LineFigure figure{.title = ood.empty()
                                   ? "Linear probes per layer"
                                   : "Linear probes per layer, in distribution and on " + ood,
                      .x = {.label = "layer", .names = layers},
                      .y = {.label = "probe accuracy", .is_percent = true, .low = 0.0}};
    std::set<double> thresholds;
    for (size_t g = 0; g < in.comparison.groups.size(); ++g) {
      const auto& group = in.comparison.groups[g];
      const auto colour = colour_of(in, g);
      auto inside = layer_points(in, group, layers, "probe_accuracy");
      if (!inside.empty()) {
        if (const auto threshold = kappa_threshold(in, group.runs)) {
          thresholds.insert(*threshold);
          figure.marks.push_back(effective_depth(inside, *threshold, colour));
        }
        figure.series.push_back({.label = group.short_label + (ood.empty() ? "" : " ID"),
                                 .colour = colour,
                                 .points = std::move(inside)});
      }
      auto outside = ood.empty() ? std::vector<PlotPoint>{}
                                 : layer_points(in, group, layers, "probe_accuracy", ood);
      if (!outside.empty()) {
        figure.series.push_back({.label = group.short_label + " OOD",
                                 .colour = colour,
                                 .stroke = Stroke::dashed,
                                 .points = std::move(outside)});
      }
    }
    add_figure(
        figures,
        {.name = ood.empty() ? "probes" : "probes-" + slug(ood),
         .section = kLayerSection,
         .figure = std::move(figure),
         .how_to_read =
             "Solid: test accuracy of a linear classifier on each layer." + ring_text(thresholds) +
             " Dashed: the same on other data; where it falls with depth, the deep layers destroy "
             "what would generalise (ρ)." +
             seed_note(in),
         .definition = definition_of(in, named("probe_accuracy"))});
  }
}

// A quantity of each layer, and beside it, dashed, another one.
struct LayerQuantity {
  const char* figure;
  const char* title;
  const char* axis;
  const char* name;
  const char* beside;  // empty: nothing
  bool is_logarithmic;
  const char* how_to_read;
};

RunFigure over_layers(const FigureInput& in, const LayerQuantity& quantity) {
  const auto layers = layers_with(in, quantity.name);
  LineFigure figure{.title = quantity.title,
                    .x = {.label = "layer", .names = layers},
                    .y = {.label = quantity.axis, .is_log = quantity.is_logarithmic}};
  for (size_t g = 0; g < in.comparison.groups.size(); ++g) {
    const auto& group = in.comparison.groups[g];
    for (const std::string name : {quantity.name, quantity.beside}) {
      if (name.empty()) continue;
      auto points = layer_points(in, group, layers, name);
      if (quantity.is_logarithmic) {
        std::erase_if(points, [](const auto& point) { return point.low <= 0; });
      }
      if (points.empty()) continue;
      const bool is_first = name == quantity.name;
      figure.series.push_back({.label = group.short_label + (is_first ? "" : " input"),
                               .colour = colour_of(in, g),
                               .stroke = is_first ? Stroke::solid : Stroke::dashed,
                               .points = std::move(points)});
    }
  }
  return {.name = quantity.figure,
          .section = kLayerSection,
          .figure = std::move(figure),
          .how_to_read = quantity.how_to_read + seed_note(in),
          .definition = definition_of(
              in, named(quantity.name),
              {"features", "samples", "upper_bound", "rank_bounds", "is_reliable", "columns"})};
}

RunFigure layer_ranks(const FigureInput& in) {
  return over_layers(
      in, {.figure = "layer-ranks",
           .title = "Rank of every layer's output",
           .axis = "rank of the covariance",
           .name = "covariance_rank",
           .beside = "",
           .is_logarithmic = true,
           .how_to_read = "How many directions the outputs of each layer vary in. Layers "
                          "whose rank has fallen to the number of classes are the tunnel: "
                          "they only compress."});
}

RunFigure alignment(const FigureInput& in) {
  return over_layers(
      in, {.figure = "alignment",
           .title = "Alignment of weights and inputs",
           .axis = "largest cosine",
           .name = "alignment",
           .beside = "",
           .is_logarithmic = false,
           .how_to_read = "The largest cosine between leading singular vectors of a layer's "
                          "weights and of its inputs: 1 amplifies exactly where the inputs "
                          "are."});
}

RunFigure gradient_ranks(const FigureInput& in) {
  return over_layers(
      in, {.figure = "gradient-ranks",
           .title = "Rank of gradients and of inputs",
           .axis = "numerical rank",
           .name = "gradient_rank",
           .beside = "activation_rank",
           .is_logarithmic = true,
           .how_to_read = "Solid: rank of the gradient in each layer's weights. Dashed: rank "
                          "of the layer's input, which bounds the exact rank of the "
                          "gradient."});
}

}  // namespace

void add_layer_figures(const FigureInput& in, std::vector<RunFigure>& figures) {
  add_figure(figures, logits_spectrum(in));
  add_figure(figures, layer_ranks(in));
  add_probes(in, figures);  // one for each OOD dataset
  add_figure(figures, alignment(in));
  add_figure(figures, gradient_ranks(in));
}

}  // namespace kelvin
