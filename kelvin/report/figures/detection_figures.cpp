#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "kelvin/report/figures/figures.h"
#include "kelvin/report/page/html.h"
#include "kelvin/report/plot/svg.h"
#include "kelvin/statistics/detection_curve.h"

namespace kelvin {
namespace {

constexpr auto kDetectionSection = "Telling other data apart";
constexpr size_t kMostDetectors = 3;

using Names = std::vector<std::string>;

double mean_auroc(const FigureInput& in, const std::string& detector, const std::string& ood) {
  const auto& quantities = in.comparison.quantities;
  const auto place =
      std::find_if(quantities.begin(), quantities.end(), [&](const Quantity& quantity) {
        return quantity.name == "auroc" && quantity.detector == detector && quantity.ood == ood;
      });
  if (place == quantities.end()) return 0;
  double sum = 0;
  double groups = 0;
  for (const auto& group : in.comparison.groups) {
    const auto& summary = group.measured[static_cast<size_t>(place - quantities.begin())].summary;
    if (summary.count == 0) continue;
    sum += summary.mean;
    ++groups;
  }
  return groups > 0 ? sum / groups : 0;
}

// All if they are few; of many NECO, the baseline, and the best of the others.
Names shown_detectors(const FigureInput& in, const std::string& ood,
                      const std::set<std::string>& all) {
  if (all.size() <= kMostDetectors) return {all.begin(), all.end()};
  Names shown;
  for (const char* name : {"neco", "msp"}) {
    if (all.contains(name)) shown.emplace_back(name);
  }
  auto others = all;
  for (const auto& name : shown) others.erase(name);
  shown.push_back(
      *std::max_element(others.begin(), others.end(), [&](const auto& a, const auto& b) {
        return mean_auroc(in, a, ood) < mean_auroc(in, b, ood);
      }));
  return shown;
}

// Of all runs of a group together.
Scores scores_of(const FigureInput& in, const Group& group, const std::string& detector,
                 const std::string& ood) {
  Scores all{.detector = detector, .ood = ood, .id_scores = {}, .ood_scores = {}};
  for (const size_t i : group.runs) {
    for (const auto& scores : in.runs[i].scores) {
      if (scores.detector != detector || scores.ood != ood) continue;
      all.id_scores.insert(all.id_scores.end(), scores.id_scores.begin(), scores.id_scores.end());
      all.ood_scores.insert(all.ood_scores.end(), scores.ood_scores.begin(),
                            scores.ood_scores.end());
    }
  }
  return all;
}

std::string auroc_definition(const FigureInput& in, const Scores& scores) {
  return definition_of(in, [&](const Reading& reading) {
    return reading.name == "auroc" && reading.detector == scores.detector &&
           reading.ood == scores.ood;
  });
}

void add_histogram(const FigureInput& in, size_t g, Scores scores,
                   std::vector<RunFigure>& figures) {
  const auto& group = in.comparison.groups[g];
  if (scores.id_scores.empty() && scores.ood_scores.empty()) return;
  const auto definition = auroc_definition(in, scores);
  Population inside{.label = "in distribution",
                    .colour = colour_of(in, g),
                    .values = std::move(scores.id_scores)};
  Population outside{
      .label = scores.ood, .colour = kNeutralColour, .values = std::move(scores.ood_scores)};
  add_figure(
      figures,
      {.name = "scores-" + slug(scores.detector + " " + scores.ood + " " + group.short_label),
       .section = kDetectionSection,
       .figure =
           HistogramFigure{.title = "Scores of " + scores.detector + " at " + group.short_label,
                           .x_label = "score (higher: more in distribution)",
                           .populations = {std::move(inside), std::move(outside)}},
       .how_to_read = "The less the two populations overlap, the better the detector tells " +
                      scores.ood + " from the data of the training; samples of all seeds together.",
       .definition = definition});
}

bool makes_a_curve(const Scores& scores) {
  const auto is_list = [](const std::vector<double>& list) {
    return !list.empty() &&
           std::none_of(list.begin(), list.end(), [](double score) { return std::isnan(score); });
  };
  return is_list(scores.id_scores) && is_list(scores.ood_scores);
}

// A few hundred points show all that a screen can.
std::vector<PlotPoint> thinned(const std::vector<RocPoint>& curve) {
  constexpr double kFinest = 1.0 / 250;
  std::vector<PlotPoint> points;
  for (size_t i = 0; i < curve.size(); ++i) {
    const bool is_end = i == 0 || i + 1 == curve.size();
    const auto& [x, y] = curve[i];
    if (is_end || x - points.back().x >= kFinest || y - points.back().y >= kFinest) {
      points.push_back({.x = x, .y = y});
    }
  }
  return points;
}

void add_roc(const FigureInput& in, const std::string& detector, const std::string& ood,
             std::vector<RunFigure>& figures) {
  LineFigure roc{
      .title = "ROC of " + detector + " against " + ood,
      .x = {.label = ood + " accepted", .is_percent = true, .low = 0.0, .high = 1.0},
      .y = {.label = "in distribution accepted", .is_percent = true, .low = 0.0, .high = 1.0}};
  std::string definition;
  for (size_t g = 0; g < in.comparison.groups.size(); ++g) {
    const auto scores = scores_of(in, in.comparison.groups[g], detector, ood);
    if (!makes_a_curve(scores)) continue;
    definition = auroc_definition(in, scores);
    roc.series.push_back(
        {.label = in.comparison.groups[g].short_label,
         .colour = colour_of(in, g),
         .points = thinned(DetectionCurve(scores.id_scores, scores.ood_scores).roc())});
  }
  if (roc.series.empty()) return;
  roc.guides.push_back({.value = 0.95, .label = "95 %"});
  add_figure(figures,
             {.name = "roc-" + slug(detector + " " + ood),
              .section = kDetectionSection,
              .figure = std::move(roc),
              .how_to_read = "Each threshold accepts so much of either population; of a single "
                             "run FPR95 with ID as the positive class stands where the curve "
                             "reaches 95 %. Scores of all seeds together.",
              .definition = definition});
}

// What a seed of a group was measured to have.
std::optional<double> seed_value(const Group& group, size_t quantity, int64_t seed) {
  for (const auto& each : group.measured[quantity].seeds) {
    if (each.seed == seed) return each.value;
  }
  return {};
}

// One point per temperature: of one seed, or the mean over seeds.
template <class Value>
std::vector<PlotPoint> points_over(const FigureInput& in, size_t rho, size_t auroc,
                                   const Value& value) {
  std::vector<PlotPoint> points;
  for (const auto& group : in.comparison.groups) {
    const std::optional<double> x = value(group, rho);
    const std::optional<double> y = value(group, auroc);
    if (x && y) points.push_back({.x = *x, .y = *y, .name = group.short_label});
  }
  return points;
}

std::optional<double> mean_of(const Group& group, size_t quantity) {
  const auto& summary = group.measured[quantity].summary;
  return summary.count > 0 ? std::optional(summary.mean) : std::nullopt;
}

void add_trade_off(const FigureInput& in, size_t rho, size_t auroc,
                   std::vector<RunFigure>& figures) {
  const auto& quantity = in.comparison.quantities[auroc];
  LineFigure figure{.title = "Detection against generalisation on " + quantity.ood,
                    .x = {.label = "OOD drop ρ (less generalisation to the right)"},
                    .y = {.label = "AUROC of " + quantity.detector, .is_percent = true}};
  std::set<int64_t> seeds;
  for (const auto& group : in.comparison.groups) {
    for (const auto& each : group.measured[rho].seeds) seeds.insert(each.seed);
    const auto x = mean_of(group, rho);
    const auto y = mean_of(group, auroc);
    if (x && y) figure.marks.push_back({.x = *x, .y = *y, .label = group.short_label});
  }
  if (figure.marks.size() < 2) return;
  figure.series.push_back(
      {.label = "mean over seeds", .points = points_over(in, rho, auroc, mean_of)});
  if (seeds.size() > 1) {
    for (const auto seed : seeds) {
      // The first stands for all in the legend.
      figure.series.push_back(
          {.label = seed == *seeds.begin() ? "each seed" : "",
           .detail = "seed " + std::to_string(seed),
           .colour = kNeutralColour,
           .stroke = Stroke::dashed,
           .points = points_over(in, rho, auroc, [&](const Group& group, size_t place) {
             return seed_value(group, place, seed);
           })});
    }
  }
  add_figure(
      figures,
      {.name = "detection-against-generalisation-" + slug(quantity.detector + " " + quantity.ood),
       .section = kDetectionSection,
       .figure = std::move(figure),
       .how_to_read = "A point per temperature: how much accuracy the last layer loses on "
                      "other data against the best layer (ρ), and how well the same data "
                      "are detected. Up is better, left is better." +
                      seed_note(in),
       .definition = ""});
}

void add_trade_offs(const FigureInput& in, std::vector<RunFigure>& figures) {
  const auto& quantities = in.comparison.quantities;
  for (size_t rho = 0; rho < quantities.size(); ++rho) {
    if (quantities[rho].name != "rho") continue;
    const auto auroc = shown_auroc(in, quantities[rho].ood);
    if (auroc) add_trade_off(in, rho, *auroc, figures);
  }
}

}  // namespace

void add_detection_figures(const FigureInput& in, std::vector<RunFigure>& figures) {
  std::map<std::string, std::set<std::string>> detectors;  // by OOD dataset
  for (const auto& run : in.runs) {
    for (const auto& scores : run.scores) detectors[scores.ood].insert(scores.detector);
  }
  for (const auto& [ood, all] : detectors) {
    for (const auto& detector : shown_detectors(in, ood, all)) {
      add_roc(in, detector, ood, figures);
      for (size_t g = 0; g < in.comparison.groups.size(); ++g) {
        add_histogram(in, g, scores_of(in, in.comparison.groups[g], detector, ood), figures);
      }
    }
  }
  add_trade_offs(in, figures);
}

}  // namespace kelvin
