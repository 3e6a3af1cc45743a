#include "kelvin/report/tables/run_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "kelvin/core/text.h"
#include "kelvin/report/page/glossary.h"
#include "kelvin/report/tables/detection_table.h"
#include "kelvin/report/tables/verdict.h"

namespace kelvin {

std::string definition_text(const Definition& definition, const std::vector<std::string>& without) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : definition.items()) {
    if (std::find(without.begin(), without.end(), key) != without.end()) continue;
    parts.push_back(key + " " + value_text(value));
  }
  return join(parts, ", ");
}

const std::array<PlaceColumn, 5>& all_places() {
  static constexpr std::array<PlaceColumn, 5> kPlaces = {{
      {"layer", [](const Reading& reading) { return reading.layer; }},
      {"split", [](const Reading& reading) { return reading.split; }},
      {"detector", [](const Reading& reading) { return reading.detector; }},
      {"ood", [](const Reading& reading) { return reading.ood; }},
      {"index",
       [](const Reading& reading) { return reading.index ? std::to_string(*reading.index) : ""; }},
  }};
  return kPlaces;
}

std::vector<PlaceColumn> used_places(const Readings& readings) {
  std::vector<PlaceColumn> used;
  for (const auto& place : all_places()) {
    const bool is_used = std::any_of(readings.begin(), readings.end(), [&](const Reading& reading) {
      return !place.cell(reading).empty();
    });
    if (is_used) used.push_back(place);
  }
  return used;
}

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string split_of(const Reading& reading) {
  if (!reading.split.empty()) return reading.split;
  const auto found = reading.definition.find("split");
  return found != reading.definition.end() && found->is_string() ? found->get<std::string>() : "";
}

// Several solution ranks are measured; the first of this kind stands in tables, at whatever gamma
// the run was set to.
bool is_default_rank(const Reading& reading, const Quantity& quantity) {
  const auto& definition = reading.definition;
  return (quantity.shift_free || definition_flag(definition, "shift_free", false)) &&
         (quantity.bias || definition_flag(definition, "bias", true)) &&
         !definition_flag(definition, "curve", false) &&
         (!quantity.split.empty() || split_of(reading) != "train");
}

bool is_defined_so(const Definition& definition, const Quantity& quantity) {
  const auto& [gamma, shift_free, bias] =
      std::tie(quantity.gamma, quantity.shift_free, quantity.bias);
  return (!gamma || definition_number(definition, "gamma") == *gamma) &&
         (!shift_free || definition_flag(definition, "shift_free", !*shift_free) == *shift_free) &&
         (!bias || definition_flag(definition, "bias", !*bias) == *bias);
}

bool fits(const Reading& reading, const Quantity& quantity) {
  if (reading.name != quantity.name || reading.ood != quantity.ood ||
      reading.detector != quantity.detector) {
    return false;
  }
  if (!quantity.split.empty() && split_of(reading) != quantity.split) return false;
  if (!quantity.layer.empty() && reading.layer != quantity.layer) return false;
  if (!is_defined_so(reading.definition, quantity)) return false;
  return reading.name != "solution_rank" || is_default_rank(reading, quantity);
}

bool is_at_width_bound(const Reading& reading) {
  return definition_flag(reading.definition, "bound_by_width", false) &&
         reading.value == definition_number(reading.definition, "upper_bound");
}

// The first key in the order of the config that is `name` or ends in ".name"; `preferred` first.
const Value* find_setting(const Config& config, const std::string& preferred,
                          const std::string& name) {
  if (config.has(preferred)) return &config.at(preferred);
  for (const auto& [key, value] : config.values()) {
    if (key == name || key.ends_with("." + name)) return &value;
  }
  return nullptr;
}

// (ood, detector) of every reading of that name that tells something of its own, sorted.
std::set<std::pair<std::string, std::string>> places_of(const std::vector<Run>& runs,
                                                        const std::string& name) {
  std::set<std::pair<std::string, std::string>> places;
  for (const auto& run : runs) {
    for (const auto& reading : run.readings) {
      if (reading.name != name || is_of_one_member(reading)) continue;
      places.emplace(reading.ood, reading.detector);
    }
  }
  return places;
}

}  // namespace

std::vector<Quantity> quantities_of(const std::vector<Run>& runs) {
  std::vector<Quantity> wanted = {{.name = "accuracy", .split = "train"},
                                  {.name = "accuracy", .split = "test"},
                                  {.name = "solution_rank"},
                                  {.name = kRankAtEqualAccuracy},
                                  {.name = "post_softmax_rank"},
                                  {.name = "logits_norm_growth"},
                                  {.name = "logits_norm_per_sample"},
                                  {.name = "kappa"}};
  for (const char* name : {"rho", "ood_retained", "auroc", "fpr95_id", "fpr95_ood"}) {
    for (const auto& [ood, detector] : places_of(runs, name)) {
      wanted.push_back({.name = name, .split = "", .ood = ood, .detector = detector});
    }
  }

  const auto accuracy = common_accuracy(runs);
  std::erase_if(wanted, [&](const Quantity& quantity) {
    return std::none_of(runs.begin(), runs.end(), [&](const Run& run) {
      return observation(run, quantity, accuracy).has_value();
    });
  });
  return wanted;
}

const Reading* default_reading(const Run& run, const Quantity& quantity) {
  const auto found = std::find_if(run.readings.begin(), run.readings.end(),
                                  [&](const Reading& reading) { return fits(reading, quantity); });
  return found == run.readings.end() ? nullptr : &*found;
}

std::optional<Observation> observation(const Run& run, const Quantity& quantity,
                                       const std::optional<double>& equal_accuracy) {
  if (quantity.name == kRankAtEqualAccuracy) {
    return equal_accuracy ? rank_at_accuracy(run, *equal_accuracy) : std::nullopt;
  }
  const auto* reading = default_reading(run, quantity);
  if (reading == nullptr || !std::isfinite(reading->value)) return std::nullopt;
  return Observation{.value = reading->value, .at_width_bound = is_at_width_bound(*reading)};
}

std::string label_of(const Quantity& quantity) {
  std::vector<std::string> places;
  for (const auto& place : {quantity.detector, quantity.ood, quantity.layer}) {
    if (!place.empty()) places.push_back(place);
  }
  if (quantity.gamma) places.push_back("gamma " + short_number(*quantity.gamma, 6));
  if (quantity.shift_free) places.emplace_back(*quantity.shift_free ? "shift-free" : "raw");
  if (quantity.bias) places.emplace_back(*quantity.bias ? "with bias" : "without bias");
  return (quantity.split.empty() ? "" : quantity.split + " ") + term(quantity.name).label +
         (places.empty() ? "" : " (" + join(places, ", ") + ")");
}

bool definition_flag(const Definition& definition, const std::string& key, bool otherwise) {
  const auto found = definition.find(key);
  return found != definition.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

double definition_number(const Definition& definition, const std::string& key) {
  const auto found = definition.find(key);
  return found != definition.end() && found->is_number() ? found->get<double>() : kNan;
}

double metric(const nlohmann::ordered_json& line, const std::string& key) {
  if (!line.is_object()) return kNan;
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : kNan;
}

bool is_initial(const nlohmann::ordered_json& line) {
  const double epoch = metric(line, "epoch");
  return std::isnan(epoch) ? metric(line, "step") == 0 : epoch == 0;
}

bool compares_views(const std::vector<Run>& runs) {
  return std::any_of(runs.begin(), runs.end(), [](const Run& run) {
    return !run.metrics.empty() &&
           std::isfinite(metric(run.metrics.front(), "train_view_accuracy"));
  });
}

int64_t seed_of(const Run& run) {
  const auto* seed = find_setting(run.config, "seed", "seed");
  return seed != nullptr && seed->is_number_integer() ? seed->get<int64_t>() : 0;
}

double temperature_of(const Run& run) {
  const auto* schedule =
      find_setting(run.config, "train.temperature_schedule", "temperature_schedule");
  if (schedule != nullptr && *schedule != "constant" && !run.metrics.empty()) {
    return metric(run.metrics.back(), "temperature");
  }
  const auto* temperature = find_setting(run.config, "train.temperature", "temperature");
  return temperature != nullptr && temperature->is_number() ? temperature->get<double>() : kNan;
}

std::string value_text(const Value& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return short_number(value.get<double>(), 6);
  if (!value.is_array()) return value.dump(-1, ' ', false, Value::error_handler_t::replace);
  std::vector<std::string> parts;
  for (const auto& element : value) parts.push_back(value_text(element));
  return "[" + join(parts, ", ") + "]";
}

std::string short_key(const std::string& key) {
  const auto dot = key.rfind('.');
  if (dot == std::string::npos) return key;
  const auto last = key.substr(dot + 1);
  return last == "name" ? key.substr(0, dot) : last;
}

}  // namespace kelvin
