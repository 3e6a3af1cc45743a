#include "kelvin/experiment/evaluate/measure_set.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/measures/measure.h"

namespace kelvin {
namespace {

// Of both kinds a measure would make numbers that say nothing, or read past an end.
void check_record(const Record& record) {
  check(torch::isfinite(record.logits).all().item<bool>(), "measures: logits of the ",
        name_of(record.split), " split", record.is_ood() ? " of '" + record.ood + "'" : "",
        " must be finite, have a NaN or an infinity");
  if (!record.labels.defined() || record.labels.numel() == 0) return;
  const auto lowest = record.labels.min().item<int64_t>();
  const auto highest = record.labels.max().item<int64_t>();
  check(lowest >= 0 && highest < record.classes, "measures: labels must be in [0, ", record.classes,
        "), got ", lowest < 0 ? lowest : highest);
}

void add_curves_of(const std::string& measure, const NamedTensors& own, NamedTensors& curves) {
  for (const auto& [name, tensor] : own) {
    check(curves.emplace(name, tensor).second, "measure '", measure, "': curve '", name,
          "' is another measure's already");
  }
}

}  // namespace

void MeasureSet::add(const std::string& name, std::unique_ptr<Measure> measure) {
  const auto own = measure->needs();
  needs_.train_split |= own.train_split;
  needs_train_layers_ |= own.train_split && own.layers;
  needs_ood_training_ |= kelvin::needs_ood_training(*measure);
  needs_.layers |= own.layers;
  needs_.layer_inputs |= own.layer_inputs;
  needs_.attention |= own.attention;
  needs_.ood |= own.ood;
  needs_.gradients |= own.gradients;
  needs_.sample = std::max(needs_.sample, own.sample);
  measures_.push_back({.name = name, .measure = std::move(measure)});
}

bool MeasureSet::has(const std::string& name) const {
  return std::any_of(measures_.begin(), measures_.end(),
                     [&](const Member& each) { return each.name == name; });
}

int64_t MeasureSet::checked_memory(const Record& example, int64_t samples, int64_t limit) const {
  int64_t total = 0;
  int64_t most = -1;
  std::string largest;
  for (const auto& [name, measure, is_watching] : measures_) {
    const auto bytes = measure->memory(example, samples);
    total += bytes;
    if (bytes > most) {
      most = bytes;
      largest = name;
    }
  }
  check(total <= limit, "measure.memory: the measures need ", byte_text(total), " for ", samples,
        " samples, '", largest, "' alone ", byte_text(most), "; ", byte_text(limit),
        " are allowed");
  return total;
}

void MeasureSet::see_sample(const Record& record) {
  const torch::NoGradGuard no_grad;
  check_record(record);
  for (auto& each : measures_) {
    if (each.measure->needs().sample > 0) each.measure->see_sample(record);
  }
}

void MeasureSet::update(const Record& record) {
  const torch::NoGradGuard no_grad;
  check_record(record);
  for (auto& each : measures_) {
    if (each.is_watching) each.measure->update(record);
  }
}

void MeasureSet::see_gradients(const Record& record) {
  const torch::NoGradGuard no_grad;
  for (auto& each : measures_) {
    if (each.measure->needs().gradients) each.measure->see_gradients(record);
  }
}

bool MeasureSet::wants_another_pass() {
  bool is_wanted = false;
  for (auto& each : measures_) {
    each.is_watching = each.is_watching && each.measure->wants_another_pass();
    is_wanted |= each.is_watching;
  }
  return is_wanted;
}

bool MeasureSet::wants_train_again() {
  bool is_wanted = false;
  for (auto& each : measures_) {
    each.is_watching = each.is_watching && each.measure->wants_train_again();
    is_wanted |= each.is_watching;
  }
  if (!is_wanted) {
    for (auto& each : measures_) each.is_watching = true;
  }
  return is_wanted;
}

Readings MeasureSet::compute(
    const std::function<void(size_t, const std::string&)>& before_each) const {
  const torch::NoGradGuard no_grad;
  Readings readings;
  for (size_t i = 0; i < measures_.size(); ++i) {
    before_each(i, measures_[i].name);
    for (auto& reading : measures_[i].measure->compute()) readings.push_back(std::move(reading));
  }
  return readings;
}

NamedTensors MeasureSet::curves() const {
  NamedTensors curves;
  for (const auto& each : measures_) add_curves_of(each.name, each.measure->curves(), curves);
  return curves;
}

NamedTensors MeasureSet::curves_of_snapshot() const {
  NamedTensors curves;
  for (const auto& each : measures_) {
    const auto* keeper = dynamic_cast<const KeepsSnapshots*>(each.measure.get());
    if (keeper != nullptr) add_curves_of(each.name, keeper->curves_of_snapshot(), curves);
  }
  return curves;
}

}  // namespace kelvin
