#include "kelvin/core/reading.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "kelvin/core/text.h"

namespace kelvin {

nlohmann::ordered_json fields_of(const Reading& reading) {
  nlohmann::ordered_json fields;
  fields["name"] = reading.name;
  fields["value"] = reading.value;
  if (!reading.layer.empty()) fields["layer"] = reading.layer;
  if (!reading.split.empty()) fields["split"] = reading.split;
  if (!reading.detector.empty()) fields["detector"] = reading.detector;
  if (!reading.ood.empty()) fields["ood"] = reading.ood;
  if (reading.index) fields["index"] = *reading.index;
  if (reading.interval) {
    fields["low"] = reading.interval->low;
    fields["high"] = reading.interval->high;
  }
  return fields;
}

namespace {

constexpr std::array<std::string_view, 4> kRanks = {"solution_rank", "post_softmax_rank",
                                                    "covariance_rank", "numerical_rank"};

// The same sentence about several readings, by what they are readings of.
struct Sentence {
  std::string subject;
  std::string text;
  std::vector<std::string> whose;  // layers or detectors, where there are any
};

// The default ones: variants of a reading follow it, and curves are not looked at one by one.
std::vector<const Reading*> shown_of(const Readings& readings) {
  using Place = std::tuple<std::string, std::string, std::string, std::string, std::string>;
  std::set<Place> seen;
  std::vector<const Reading*> shown;
  for (const auto& reading : readings) {
    if (reading.index) continue;
    if (seen.emplace(reading.name, reading.layer, reading.split, reading.detector, reading.ood)
            .second) {
      shown.push_back(&reading);
    }
  }
  return shown;
}

// Of a definition's key that holds a number; -1 if there is none.
double number_at(const Definition& definition, const char* key) {
  const auto found = definition.find(key);
  return found != definition.end() && found->is_number() ? found->get<double>() : -1;
}

bool is_as_large_as_samples_allow(const Reading& reading) {
  if (std::find(kRanks.begin(), kRanks.end(), reading.name) == kRanks.end()) return false;
  const auto samples = number_at(reading.definition, "samples");
  const auto bound = number_at(reading.definition, "upper_bound");
  return samples > 0 && bound >= samples - 1 && reading.value >= bound;
}

bool is_worse_than_chance(const Reading& reading) {
  constexpr double kChance = 0.5;
  if (reading.name != "auroc") return false;
  return reading.interval ? reading.interval->high < kChance : reading.value < kChance;
}

// Empty if the reading means what it says.
std::string caveat_of(const Reading& reading) {
  const auto own = reading.definition.find(kCaveat);
  if (own != reading.definition.end() && own->is_string()) return own->get<std::string>();
  if (is_as_large_as_samples_allow(reading)) {
    return "as large as " + short_number(number_at(reading.definition, "samples"), 6) +
           " samples allow; with more it may be larger";
  }
  if (is_worse_than_chance(reading)) {
    return "below 50 %: OOD samples score higher than test samples, the detector is misled";
  }
  return "";
}

std::string subject_of(const Reading& reading) {
  // All numbers of a detector have the same trouble if one has.
  const bool is_detection = !reading.detector.empty();
  const bool is_own = reading.definition.contains(kCaveat);
  auto subject = is_detection && is_own ? "detection" : reading.name;
  if (!reading.ood.empty()) subject += (is_detection ? " against " : " on ") + reading.ood;
  return subject;
}

}  // namespace

std::vector<std::string> caveats(const Readings& readings) {
  std::vector<Sentence> sentences;
  for (const auto* reading : shown_of(readings)) {
    auto text = caveat_of(*reading);
    if (text.empty()) continue;
    auto subject = subject_of(*reading);
    auto found = std::find_if(sentences.begin(), sentences.end(), [&](const Sentence& each) {
      return each.subject == subject && each.text == text;
    });
    if (found == sentences.end()) {
      found = sentences.insert(sentences.end(), {std::move(subject), std::move(text), {}});
    }
    const auto& who = reading->layer.empty() ? reading->detector : reading->layer;
    auto& whose = found->whose;
    if (!who.empty() && std::find(whose.begin(), whose.end(), who) == whose.end()) {
      whose.push_back(who);
    }
  }
  std::vector<std::string> lines;
  lines.reserve(sentences.size());
  for (const auto& [subject, text, whose] : sentences) {
    lines.push_back(subject + (whose.empty() ? "" : " (" + join(whose, ", ") + ")") + ": " + text);
  }
  return lines;
}

}  // namespace kelvin
