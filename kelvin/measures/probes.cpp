#include "kelvin/measures/probes.h"

#include <torch/types.h>

#include <algorithm>
#include <functional>

#include "kelvin/core/check.h"
#include "kelvin/core/reading.h"
#include "kelvin/core/seeds.h"
#include "kelvin/core/text.h"
#include "kelvin/numerics/bootstrap.h"
#include "kelvin/ops/layer_matrices.h"

namespace kelvin {
namespace {

bool is_before_add(const LayerRecord& layer, ProbeTap tap) {
  return tap == ProbeTap::before_add && layer.before_add.defined();
}

const torch::Tensor& tapped(const LayerRecord& layer, ProbeTap tap) {
  return is_before_add(layer, tap) ? layer.before_add : layer.output;
}

}  // namespace

std::string tap_text(const LayerRecord& layer, ProbeTap tap) {
  return is_before_add(layer, tap) ? "after normalisation, before the residual add"
                                   : "after normalisation, residual add and activation";
}

std::string tap_text(ProbeTap tap) {
  return tap == ProbeTap::before_add
             ? "after normalisation, before the residual add where there is one"
             : "after normalisation, residual add and activation";
}

torch::Tensor flattened_rows(const LayerRecord& layer, ProbeTap tap) {
  return feature_rows(tapped(layer, tap)).to(torch::kFloat32).contiguous();
}

torch::Tensor pooled_rows(const LayerRecord& layer, ProbeTap tap, int64_t pool) {
  const auto rows = pooled_features(tapped(layer, tap), pool).to(torch::kFloat32);
  check(torch::isfinite(rows).all().item<bool>(), "linear_probe: features of layer '", layer.name,
        "' must be finite, hold NaN or infinity");
  return rows;
}

void check_labels(const Record& record) {
  const std::string whose = record.is_ood() ? record.ood : "the trained dataset";
  check(record.classes >= 2, "linear_probe: needs at least 2 classes, ", whose, " has ",
        record.classes);
  const auto& labels = record.labels;
  check(labels.dim() == 1 && labels.size(0) > 0 && !labels.is_floating_point(),
        "linear_probe: labels must be whole numbers, one for each sample, got ", labels.sizes());
  check(labels.min().item<int64_t>() >= 0 && labels.max().item<int64_t>() < record.classes,
        "linear_probe: labels of ", whose, " must be in [0, ", record.classes, "), go from ",
        labels.min().item<int64_t>(), " to ", labels.max().item<int64_t>());
}

void check_enough_samples(int64_t samples, int64_t classes) {
  check(samples >= classes, "linear_probe: needs at least as many training samples as classes, ",
        classes, ", got ", samples);
}

size_t first_sufficient(const std::vector<double>& accuracies, double threshold) {
  check(!accuracies.empty(), "first_sufficient: needs at least one layer");
  const double wanted = threshold * accuracies.back();
  const auto reached = std::find_if(accuracies.begin(), accuracies.end() - 1,
                                    [&](double accuracy) { return accuracy >= wanted; });
  return static_cast<size_t>(reached - accuracies.begin()) + 1;
}

double effective_depth(const std::vector<double>& accuracies, size_t last, double threshold) {
  check(last >= 1 && last <= accuracies.size(), "effective_depth: last must be in [1, ",
        accuracies.size(), "], got ", last);
  const std::vector<double> considered(accuracies.begin(), accuracies.begin() + long(last));
  return static_cast<double>(first_sufficient(considered, threshold)) / static_cast<double>(last);
}

double generalisation_drop(const std::vector<double>& accuracies) {
  check(!accuracies.empty(), "generalisation_drop: needs at least one layer");
  const double best = *std::max_element(accuracies.begin(), accuracies.end());
  check(best > 0, "generalisation_drop: is undefined when no layer gets a sample right");
  return (best - accuracies.back()) / best;
}

namespace {

using Accuracies = std::vector<double>;  // by layer

// What the layers' accuracies are on the test samples and on each resample of them.
struct Resampled {
  Accuracies accuracies;
  std::vector<Accuracies> resamples;
};

Accuracies list_of(const torch::Tensor& row) {
  const auto values = row.contiguous();
  return {values.data_ptr<double>(), values.data_ptr<double>() + values.numel()};
}

Resampled resampled(const std::vector<ProbeResult>& probes, uint64_t seed) {
  std::vector<torch::Tensor> rows;
  rows.reserve(probes.size());
  for (const auto& probe : probes) rows.push_back(probe.hits);
  const auto hits = torch::stack(rows).to(torch::kFloat64);
  Resampled result{.accuracies = list_of(hits.mean(1)), .resamples = {}};
  const auto means = bootstrap_means(hits, {.seed = seed});
  result.resamples.reserve(static_cast<size_t>(means.size(0)));
  for (int64_t i = 0; i < means.size(0); ++i) result.resamples.push_back(list_of(means[i]));
  return result;
}

bool is_any_right(const Accuracies& accuracies) {
  return *std::max_element(accuracies.begin(), accuracies.end()) > 0;
}

// Of layers' accuracies.
struct Number {
  std::function<bool(const Accuracies&)> is_defined;
  std::function<double(const Accuracies&)> value;
};

// A number that is defined on the test samples, with its interval.  Resamples in which it is not
// give none.
Reading reading_of(const Resampled& resampled, const Number& number, Definition definition) {
  std::vector<double> numbers;
  numbers.reserve(resampled.resamples.size());
  for (const auto& accuracies : resampled.resamples) {
    if (number.is_defined(accuracies)) numbers.push_back(number.value(accuracies));
  }
  definition["interval"] = "95 %, bootstrap over test samples";
  definition["resamples"] = numbers.size();
  Reading reading{.name = "", .value = number.value(resampled.accuracies)};
  if (!numbers.empty()) reading.interval = percentile_interval(numbers);
  reading.definition = std::move(definition);
  return reading;
}

Reading accuracy_of(const Resampled& resampled, size_t layer, const ProbeResult& probe) {
  std::vector<double> numbers;
  numbers.reserve(resampled.resamples.size());
  for (const auto& accuracies : resampled.resamples) numbers.push_back(accuracies[layer]);
  auto definition = probe.definition;
  definition["interval"] = "95 %, bootstrap over test samples";
  definition["resamples"] = numbers.size();
  return {.name = "probe_accuracy",
          .value = resampled.accuracies[layer],
          .layer = probe.layer,
          .split = "test",
          .interval = percentile_interval(numbers),
          .definition = definition};
}

// What all numbers of several layers have in common.
Definition common_definition(const std::vector<ProbeResult>& probes, const ProbeOptions& options) {
  Definition definition = {
      {"layers", probes.size()}, {"last_layer", "logits"}, {"tap", tap_text(options.tap)}};
  for (const char* key : {"protocol", "samples", "train_samples"}) {
    if (probes[0].definition.contains(key)) definition[key] = probes[0].definition[key];
  }
  return definition;
}

// Whether the accuracy could be that of a probe that learnt nothing.
bool is_at_chance(const Resampled& resampled, size_t layer, double chance) {
  std::vector<double> numbers;
  numbers.reserve(resampled.resamples.size());
  for (const auto& accuracies : resampled.resamples) numbers.push_back(accuracies[layer]);
  return percentile_interval(numbers).low <= chance;
}

std::string chance_text(const Resampled& resampled, size_t layer, double chance) {
  return c10::str(short_number(100 * resampled.accuracies[layer], 3), " % right, ",
                  short_number(100 * chance, 3), " % by always naming the most frequent class");
}

// Undefined, and left out, if the last layer gets no sample right: any layer would reach that.
void add_kappa(const Resampled& resampled, const Definition& common, double threshold,
               double chance, Readings& readings) {
  const auto layers = resampled.accuracies.size();
  for (const size_t last : {layers, layers - 1}) {
    if (last == 0) break;
    const Number effective = {
        .is_defined = [&](const Accuracies& accuracies) { return accuracies[last - 1] > 0; },
        .value =
            [&](const Accuracies& accuracies) {
              return effective_depth(accuracies, last, threshold);
            }};
    if (!effective.is_defined(resampled.accuracies)) continue;
    auto definition = common;
    definition["threshold"] = threshold;
    definition["of"] = "probe_accuracy on the test split";
    definition["layers"] = last;
    definition["last_layer"] = last == layers ? "logits" : "penultimate";
    if (is_at_chance(resampled, last - 1, chance)) {
      definition[kCaveat] =
          c10::str("the last probe is at chance (", chance_text(resampled, last - 1, chance),
                   "), which any layer reaches");
    }
    auto kappa = reading_of(resampled, effective, definition);
    kappa.name = "kappa";
    readings.push_back(std::move(kappa));
  }
}

// Undefined, and left out, if no layer gets a sample right.
void add_rho(const Resampled& resampled, Definition common, const std::string& ood, double chance,
             Readings& readings) {
  if (!is_any_right(resampled.accuracies)) return;
  const auto& accuracies = resampled.accuracies;
  const auto best = static_cast<size_t>(std::max_element(accuracies.begin(), accuracies.end()) -
                                        accuracies.begin());
  if (is_at_chance(resampled, best, chance)) {
    common[kCaveat] = c10::str("the best probe is at chance (",
                               chance_text(resampled, best, chance), "), so nothing can be lost");
  }
  common["of"] = "probe_accuracy on the OOD test split";
  auto rho = reading_of(resampled, {is_any_right, generalisation_drop}, common);
  rho.name = "rho";
  rho.ood = ood;
  auto retained =
      reading_of(resampled,
                 {is_any_right,
                  [](const Accuracies& accuracies) { return 1 - generalisation_drop(accuracies); }},
                 common);
  retained.name = "ood_retained";
  retained.ood = ood;
  readings.push_back(std::move(rho));
  readings.push_back(std::move(retained));
}

}  // namespace

double chance_of(const torch::Tensor& labels) {
  return static_cast<double>(torch::bincount(labels).max().item<int64_t>()) /
         static_cast<double>(labels.size(0));
}

Readings probe_readings(const std::vector<ProbeResult>& probes, const std::string& ood,
                        const ProbeOptions& options) {
  const auto all = resampled(probes, derive_seed(options.seed, "bootstrap of probes"));
  Readings readings;
  readings.reserve(probes.size() + 2);
  for (size_t i = 0; i < probes.size(); ++i) {
    readings.push_back(accuracy_of(all, i, probes[i]));
    readings.back().ood = ood;
  }
  const auto common = common_definition(probes, options);
  if (ood.empty()) {
    add_kappa(all, common, options.threshold, probes[0].chance, readings);
  } else {
    add_rho(all, common, ood, probes[0].chance, readings);
  }
  return readings;
}

}  // namespace kelvin
