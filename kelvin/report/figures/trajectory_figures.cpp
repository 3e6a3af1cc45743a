#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "kelvin/report/figures/figures.h"
#include "kelvin/report/page/html.h"

namespace kelvin {
namespace {

constexpr auto kTrajectorySection = "Over training";

// One number of a snapshot of the network; nothing if the snapshot has none.
using SnapshotValue = std::function<std::optional<double>(const TrajectoryLine& snapshot)>;

enum class StepPlace { network, mean_over_layers };

// A reading over steps, and the texts of its figure.
struct StepQuantity {
  std::string figure;
  std::string title;
  std::string how_to_read;
  std::string name;
  StepPlace place = StepPlace::network;
  std::string ood = {};
  Axis axis = {};
};

const std::vector<StepQuantity>& step_quantities() {
  static const std::vector<StepQuantity> quantities = {
      {.figure = "layer-ranks-over-steps",
       .title = "Rank of the layers' outputs over steps, mean over layers",
       .how_to_read = "How many directions the outputs of a layer vary in, on average over the "
                      "layers. Where it falls, layers become a tunnel that only compresses.",
       .name = "covariance_rank",
       .place = StepPlace::mean_over_layers,
       .axis = {.label = "rank of the covariance", .low = 0.0}},
      {.figure = "alignment-over-steps",
       .title = "Alignment of weights and inputs over steps, mean over layers",
       .how_to_read = "The largest cosine between leading singular vectors of a layer's weights "
                      "and of its inputs, on average over the layers: the nearer to 1, the more "
                      "the weights amplify where the inputs are.",
       .name = "alignment",
       .axis = {.label = "largest cosine"}},
      {.figure = "norm-alignment-over-steps",
       .title = "Norm alignment over steps, mean over layers",
       .how_to_read = "Which part of the largest norm that its singular values allow a layer's "
                      "product of weights and inputs has, on average over the layers: 1 if the "
                      "singular vectors match in order.",
       .name = "norm_alignment",
       .place = StepPlace::mean_over_layers,
       .axis = {.label = "share of the largest norm"}},
      {.figure = "top-singular-share-over-steps",
       .title = "Share of the product of top singular values over steps",
       .how_to_read = "By how much the network amplifies its input, over the product of its "
                      "layers' top singular values: near 1 if every layer passes on its leading "
                      "direction to the next.",
       .name = "top_singular_share",
       .axis = {.label = "gain / product", .is_log = true}},
      {.figure = "gradient-ranks-over-steps",
       .title = "Rank of the gradients over steps, mean over layers",
       .how_to_read = "How many directions the gradient in a layer's weights has, on average over "
                      "the layers: few directions mean updates of low rank.",
       .name = "gradient_rank",
       .place = StepPlace::mean_over_layers,
       .axis = {.label = "numerical rank", .low = 0.0}},
      {.figure = "input-ranks-over-steps",
       .title = "Rank of the layers' inputs over steps, mean over layers",
       .how_to_read = "How many directions the inputs of a layer have on the batch of the "
                      "gradients, on average over the layers. It bounds the exact rank of the "
                      "gradient.",
       .name = "activation_rank",
       .place = StepPlace::mean_over_layers,
       .axis = {.label = "numerical rank", .low = 0.0}},
      {.figure = "gradient-rank-violations-over-steps",
       .title = "Layers whose gradient outranks their input over steps",
       .how_to_read = "In how many layers the numerical rank of the gradient is above that of the "
                      "input. The bound holds for exact rank, so it may be above 0.",
       .name = "gradient_rank_violations",
       .axis = {.label = "layers", .is_whole = true, .low = 0.0}},
      {.figure = "nc1-over-steps",
       .title = "NC1 over steps",
       .how_to_read = "How far training samples spread around their class mean, relative to how "
                      "far the means differ: the nearer to 0, the more each class is one point.",
       .name = "nc1_trace_pinv",
       .axis = {.label = "Tr(S_W S_B^+) / K", .is_log = true}},
      {.figure = "nc2-over-steps",
       .title = "NC2 over steps",
       .how_to_read = "How far the class means are from a simplex of equal lengths and angles: 0 "
                      "for such a simplex.",
       .name = "nc2_etf_error",
       .axis = {.label = "distance to a simplex", .low = 0.0}},
      {.figure = "nc3-over-steps",
       .title = "NC3 over steps",
       .how_to_read = "The squared distance between the classifier and the class means, each "
                      "scaled to norm 1: 0 if they are the same but for scale.",
       .name = "nc3_self_duality",
       .axis = {.label = "squared distance", .low = 0.0}},
      {.figure = "nc4-over-steps",
       .title = "NC4 over steps",
       .how_to_read = "The share of training samples for which the network does not predict the "
                      "class whose mean is nearest.",
       .name = "nc4_ncc_mismatch",
       .axis = {.label = "not the nearest mean", .is_percent = true, .low = 0.0}}};
  return quantities;
}

// Lines of a trajectory name no definition: it is that of the readings at the end, less what
// differs between snapshots, layers or runs.
const std::vector<std::string>& keys_left_out() {
  static const std::vector<std::string> keys = {
      "samples",     "ood_samples", "split",         "temperature",     "columns",
      "features",    "upper_bound", "features_used", "position_stride", "missing_classes",
      "rank_bounds", "is_reliable", "symbols",       "passes"};
  return keys;
}

bool is_of_steps(const Reading& reading, const StepQuantity& quantity) {
  return reading.name == quantity.name && reading.ood == quantity.ood && !reading.index &&
         reading.layer.empty() == (quantity.place == StepPlace::network);
}

// The first reading of a name and a layer is the default one.
std::optional<double> value_at(const TrajectoryLine& snapshot, const StepQuantity& quantity) {
  std::set<std::string> layers;
  double sum = 0;
  for (const auto& reading : snapshot.readings) {
    if (!is_of_steps(reading, quantity) || !std::isfinite(reading.value)) continue;
    if (layers.insert(reading.layer).second) sum += reading.value;
  }
  if (layers.empty()) return std::nullopt;
  return sum / static_cast<double>(layers.size());
}

// A series per group; step 0 has no place on a logarithmic axis.
std::vector<Series> series_over_steps(const FigureInput& in, const SnapshotValue& value) {
  std::vector<Series> all;
  for (size_t g = 0; g < in.comparison.groups.size(); ++g) {
    std::map<double, std::vector<double>> values;
    for (const size_t i : in.comparison.groups[g].runs) {
      for (const auto& snapshot : in.runs[i].trajectory) {
        if (snapshot.step <= 0) continue;
        if (const auto y = value(snapshot))
          values[static_cast<double>(snapshot.step)].push_back(*y);
      }
    }
    if (values.empty()) continue;
    all.push_back({.label = in.comparison.groups[g].short_label,
                   .colour = colour_of(in, g),
                   .points = mean_points(values)});
  }
  return all;
}

Axis steps() { return {.label = "training step", .is_log = true, .is_whole = true}; }

std::string step_note(const FigureInput& in) {
  return " Step 0, the initialisation, has no place on a logarithmic axis and is left out." +
         seed_note(in);
}

RunFigure over_steps(const FigureInput& in, const StepQuantity& quantity) {
  const auto value = [&](const TrajectoryLine& snapshot) -> std::optional<double> {
    const auto found = value_at(snapshot, quantity);
    if (found && quantity.axis.is_log && *found <= 0) return std::nullopt;
    return found;
  };
  return {.name = quantity.figure,
          .section = kTrajectorySection,
          .figure = LineFigure{.title = quantity.title,
                               .x = steps(),
                               .y = quantity.axis,
                               .series = series_over_steps(in, value)},
          .how_to_read = quantity.how_to_read + step_note(in),
          .definition = definition_of(
              in, [&](const Reading& reading) { return is_of_steps(reading, quantity); },
              keys_left_out())};
}

// Of OOD data that any snapshot has, each its own figure.
void add_orthodev(const FigureInput& in, std::vector<RunFigure>& figures) {
  const std::string name = "orthodev";
  std::set<std::string> oods;
  for (const auto& run : in.runs) {
    for (const auto& snapshot : run.trajectory) {
      for (const auto& reading : snapshot.readings) {
        if (reading.name == name && !reading.ood.empty()) oods.insert(reading.ood);
      }
    }
  }
  for (const auto& ood : oods) {
    add_figure(
        figures,
        over_steps(in, {.figure = "orthodev-over-steps-" + slug(ood),
                        .title = "OrthoDev over steps, " + ood,
                        .how_to_read =
                            "The mean absolute cosine between the class means and the mean of the "
                            "other data: 0 if the other data lie orthogonal to all classes.",
                        .name = name,
                        .ood = ood,
                        .axis = {.label = "mean |cosine|", .low = 0.0}}));
  }
}

// Singular values above gamma times the largest, for the threshold of the tables.
std::optional<double> logits_rank(const TrajectoryLine& snapshot) {
  constexpr double kGamma = 1e-3;
  const auto& values = snapshot.logits_singular_values;
  if (values.empty()) return std::nullopt;
  const bool is_finite =
      std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  if (!is_finite) return std::nullopt;
  const double threshold = kGamma * *std::max_element(values.begin(), values.end());
  return static_cast<double>(
      std::count_if(values.begin(), values.end(), [&](double value) { return value > threshold; }));
}

RunFigure logits_rank_over_steps(const FigureInput& in) {
  return {.name = "logits-rank-over-steps",
          .section = kTrajectorySection,
          .figure = LineFigure{.title = "Rank of the logits over steps",
                               .x = steps(),
                               .y = {.label = "rank", .is_whole = true, .low = 0.0},
                               .series = series_over_steps(in, logits_rank)},
          .how_to_read =
              "The solution rank at every look: how many singular values "
              "of the logits are above 10⁻³ of the largest." +
              step_note(in),
          .definition = "gamma 0.001, shift_free true, bias true"};
}

}  // namespace

void add_trajectory_figures(const FigureInput& in, std::vector<RunFigure>& figures) {
  add_figure(figures, logits_rank_over_steps(in));
  for (const auto& quantity : step_quantities()) add_figure(figures, over_steps(in, quantity));
  add_orthodev(in, figures);  // one for each OOD dataset
}

}  // namespace kelvin
