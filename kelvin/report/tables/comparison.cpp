#include "kelvin/report/tables/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/report/page/glossary.h"
#include "kelvin/report/tables/verdict.h"

namespace kelvin {
namespace {

bool is_seed(const std::string& key) { return key == "seed" || key.ends_with(".seed"); }
bool is_temperature(const std::string& key) {
  return key == "temperature" || key.ends_with(".temperature");
}

std::string setting_text(const Config& config, const std::string& key) {
  return config.has(key) ? value_text(config.at(key)) : "unset";
}

// Two keys with the same last word are told apart by their full names.
std::string key_text(const std::string& key, const std::vector<std::string>& keys) {
  const auto same = std::count_if(keys.begin(), keys.end(), [&](const std::string& other) {
    return short_key(other) == short_key(key);
  });
  return same > 1 ? key : short_key(key);
}

std::string label_of(const Run& run, const std::vector<std::string>& keys) {
  std::vector<std::string> parts;
  for (const auto& key : keys)
    parts.push_back(key_text(key, keys) + " " + setting_text(run.config, key));
  if (!parts.empty()) return join(parts, ", ");
  const double temperature = temperature_of(run);
  return std::isnan(temperature) ? "all runs" : "temperature " + short_number(temperature, 6);
}

std::string short_label_of(const Run& run, const std::vector<std::string>& keys) {
  const bool only_temperature = keys.empty() || (keys.size() == 1 && is_temperature(keys[0]));
  const double temperature = temperature_of(run);
  if (!only_temperature || std::isnan(temperature)) return label_of(run, keys);
  return "T = " + short_number(temperature, 6);
}

std::vector<Group> groups_of(const std::vector<Run>& runs) {
  const auto keys = differing_keys(runs);
  std::vector<Group> groups;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto label = label_of(runs[i], keys);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& each) { return each.label == label; });
    if (group == groups.end()) {
      groups.push_back({.label = label,
                        .short_label = short_label_of(runs[i], keys),
                        .temperature = temperature_of(runs[i])});
      group = groups.end() - 1;
    }
    group->runs.push_back(i);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    if (std::isnan(a.temperature) || std::isnan(b.temperature)) {
      return !std::isnan(a.temperature) && std::isnan(b.temperature);
    }
    return a.temperature < b.temperature;
  });
  return groups;
}

// Keeps one run per seed, a finished one if there is one, and moves the others to `repeated`.
void keep_one_run_per_seed(Group& group, const std::vector<Run>& runs,
                           std::vector<size_t>& repeated) {
  std::map<int64_t, size_t> kept;
  for (const size_t i : group.runs) {
    const auto [place, is_new] = kept.emplace(seed_of(runs[i]), i);
    if (is_new) continue;
    const bool is_better =
        runs[place->second].status != RunStatus::finished && runs[i].status == RunStatus::finished;
    repeated.push_back(is_better ? std::exchange(place->second, i) : i);
  }
  group.runs.clear();
  for (const auto& [seed, i] : kept) group.runs.push_back(i);
}

SeedValues measured_in(const Group& group, const std::vector<Run>& runs, const Quantity& quantity,
                       const std::optional<double>& accuracy) {
  SeedValues measured;
  std::vector<double> values;
  for (const size_t i : group.runs) {
    const auto seen = observation(runs[i], quantity, accuracy);
    if (!seen) continue;
    measured.seeds.push_back(
        {.seed = seed_of(runs[i]), .value = seen->value, .at_width_bound = seen->at_width_bound});
    values.push_back(seen->value);
  }
  if (!values.empty()) measured.summary = summarise(values);
  return measured;
}

// Two significant digits of the half-width decide how many decimals a mean deserves.
int decimals_for(double half_width) {
  if (!(half_width > 0)) return -1;
  return std::clamp(1 - static_cast<int>(std::floor(std::log10(half_width))), 0, 4);
}

bool has_width_bound(const SeedValues& measured) {
  return std::any_of(measured.seeds.begin(), measured.seeds.end(),
                     [](const SeedValue& seed) { return seed.at_width_bound; });
}

std::string signed_text(const Summary& difference, const Quantity& quantity) {
  auto text = mean_text(difference, quantity);
  if (text.ends_with("%")) text.replace(text.size() - 1, 1, "pp");
  if (difference.mean > 0) return "+" + text;
  return text.starts_with("-") ? "−" + text.substr(1) : text;
}

std::string full_number(double value) { return fmt::format("{}", value); }

}  // namespace

std::vector<std::string> differing_keys(const std::vector<Run>& runs) {
  std::map<std::string, bool> differs;
  for (const auto& run : runs) {
    for (const auto& [key, value] : run.config.values()) {
      if (is_seed(key)) continue;
      const auto& first = runs.front().config;
      differs[key] |= !first.has(key) || first.at(key) != value;
    }
  }
  // A key that only some runs have is missing from the later ones.
  for (auto& [key, does] : differs) {
    for (const auto& run : runs) does |= !run.config.has(key);
  }
  std::vector<std::string> keys;
  for (const auto& [key, does] : differs) {
    if (does) keys.push_back(key);
  }
  std::stable_partition(keys.begin(), keys.end(), is_temperature);
  return keys;
}

Comparison compare(const std::vector<Run>& runs) {
  check(!runs.empty(), "compare: needs at least one run, got none");
  Comparison comparison;
  comparison.quantities = quantities_of(runs);
  comparison.groups = groups_of(runs);
  if (comparison.groups.size() > 1) {
    comparison.equal_accuracy = common_accuracy(runs);
  } else {
    // Equal to what?  There is nothing to compare with.
    std::erase(comparison.quantities, Quantity{.name = kRankAtEqualAccuracy});
  }
  for (auto& group : comparison.groups) {
    keep_one_run_per_seed(group, runs, comparison.repeated);
    for (const auto& quantity : comparison.quantities) {
      group.measured.push_back(measured_in(group, runs, quantity, comparison.equal_accuracy));
    }
  }
  return comparison;
}

std::optional<Summary> paired_difference(const SeedValues& from, const SeedValues& to) {
  std::vector<double> differences;
  for (const auto& one : from.seeds) {
    for (const auto& other : to.seeds) {
      if (one.seed == other.seed) differences.push_back(other.value - one.value);
    }
  }
  if (differences.empty()) return std::nullopt;
  return summarise(differences);
}

std::string mean_text(const Summary& summary, const Quantity& quantity) {
  if (summary.count == 0) return "–";
  if (term(quantity.name).is_fraction) {
    const double mean = 100 * summary.mean;
    if (summary.count == 1) return fmt::format("{:.1f} %", mean);
    return fmt::format("{:.1f} ± {:.1f} %", mean, 100 * summary.half_width);
  }
  const int decimals = decimals_for(summary.half_width);
  if (summary.count == 1) return short_number(summary.mean, 3);
  if (decimals < 0) return short_number(summary.mean, 4) + " ± 0";
  return fmt::format("{:.{}f} ± {:.{}f}", summary.mean, decimals, summary.half_width, decimals);
}

std::string value_text(const SeedValue& value, const Quantity& quantity) {
  const auto text = term(quantity.name).is_fraction ? fmt::format("{:.1f} %", 100 * value.value)
                                                    : short_number(value.value, 3);
  return text + (value.at_width_bound ? kDagger : "");
}

Table comparison_table(const Comparison& comparison) {
  Table table;
  table.columns.push_back({.name = "quantity"});
  for (const auto& group : comparison.groups) {
    table.columns.push_back({.name = group.label, .alignment = Alignment::right});
  }
  const bool has_difference = comparison.groups.size() == 2;
  if (has_difference) {
    table.columns.push_back({.name = "difference", .alignment = Alignment::right});
  }

  for (size_t i = 0; i < comparison.quantities.size(); ++i) {
    const auto& quantity = comparison.quantities[i];
    std::vector<std::string> row = {label_of(quantity)};
    for (const auto& group : comparison.groups) {
      const auto& measured = group.measured[i];
      row.push_back(mean_text(measured.summary, quantity) +
                    (has_width_bound(measured) ? kDagger : ""));
    }
    if (has_difference) {
      const auto difference =
          paired_difference(comparison.groups[0].measured[i], comparison.groups[1].measured[i]);
      row.push_back(difference ? signed_text(*difference, quantity) : "–");
    }
    table.rows.push_back(std::move(row));
  }
  table.notes = comparison_notes(comparison);
  return table;
}

Table comparison_records(const Comparison& comparison) {
  Table table;
  for (const char* name : {"group", "name", "split", "ood", "detector"}) {
    table.columns.push_back({.name = name});
  }
  for (const char* name : {"temperature", "seeds", "mean", "half_width", "deviation", "smallest",
                           "largest", "training_accuracy"}) {
    table.columns.push_back({.name = name, .alignment = Alignment::right});
  }
  for (const auto& group : comparison.groups) {
    for (size_t i = 0; i < comparison.quantities.size(); ++i) {
      const auto& quantity = comparison.quantities[i];
      const auto& summary = group.measured[i].summary;
      if (summary.count == 0) continue;
      const bool is_equal_accuracy = quantity.name == kRankAtEqualAccuracy;
      const bool has_interval = summary.count > 1;
      table.rows.push_back({group.label, quantity.name, quantity.split, quantity.ood,
                            quantity.detector,
                            std::isnan(group.temperature) ? "" : full_number(group.temperature),
                            std::to_string(summary.count), full_number(summary.mean),
                            has_interval ? full_number(summary.half_width) : "",
                            has_interval ? full_number(summary.deviation) : "",
                            full_number(summary.smallest), full_number(summary.largest),
                            is_equal_accuracy ? full_number(*comparison.equal_accuracy) : ""});
    }
  }
  return table;
}

std::vector<std::string> comparison_notes(const Comparison& comparison) {
  std::vector<std::string> notes;
  size_t most_seeds = 0;
  bool has_dagger = false;
  for (const auto& group : comparison.groups) {
    most_seeds = std::max(most_seeds, group.runs.size());
    has_dagger |= std::any_of(group.measured.begin(), group.measured.end(), has_width_bound);
  }
  notes.emplace_back(most_seeds > 1
                         ? "Mean over the seeds ± half of the 95 % interval of the mean (Student's "
                           "t)."
                         : "One seed per group: these numbers have no interval, and another seed "
                           "may give others.");
  if (comparison.groups.size() == 2 && most_seeds > 1) {
    notes.push_back("The difference is " + comparison.groups[1].label + " minus " +
                    comparison.groups[0].label + ", paired by seed; pp are percentage points.");
  }
  const bool has_equal_accuracy =
      std::any_of(comparison.quantities.begin(), comparison.quantities.end(),
                  [](const Quantity& quantity) { return quantity.name == kRankAtEqualAccuracy; });
  if (has_equal_accuracy && comparison.equal_accuracy) {
    notes.push_back(fmt::format(
        "SR at equal training accuracy: at the first epoch that reaches {:.1f} %, the training "
        "accuracy every run reaches.",
        100 * *comparison.equal_accuracy));
  }
  if (has_dagger) {
    notes.emplace_back(
        "† In at least one seed the rank is at the bound that the width of the classifier's input "
        "sets: it could not be higher.");
  }
  if (!comparison.repeated.empty()) {
    notes.push_back(fmt::format("Left out because they repeat a seed of their group: {} run{}.",
                                comparison.repeated.size(),
                                comparison.repeated.size() == 1 ? "" : "s"));
  }
  return notes;
}

}  // namespace kelvin
