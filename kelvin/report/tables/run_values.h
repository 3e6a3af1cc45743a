#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {

// "gamma 0.001, matrix logits, ..."; keys in `without` are left out.
std::string definition_text(const Definition& definition,
                            const std::vector<std::string>& without = {});

// Where a reading was taken, as a column of a table: its layer, split, detector, ...
struct PlaceColumn {
  const char* name;
  std::string (*cell)(const Reading&);
};

const std::array<PlaceColumn, 5>& all_places();

// Those in which some reading has something to show.
std::vector<PlaceColumn> used_places(const Readings& readings);

// One number per run that can be compared between runs: a reading's name and,
// where they apply, what it was measured on.
struct Quantity {
  std::string name;
  std::string split = {};
  std::string ood = {};
  std::string detector = {};
  // Where they are set, another reading of the name than the default is meant.
  std::string layer = {};
  std::optional<double> gamma = {};
  std::optional<bool> shift_free = {};
  std::optional<bool> bias = {};
  auto operator<=>(const Quantity&) const = default;
};

// SR at the first epoch that reaches a given training accuracy; comes from metrics, not readings.
inline constexpr const char* kRankAtEqualAccuracy = "solution_rank_at_equal_accuracy";

struct Observation {
  double value = 0;
  bool at_width_bound = false;  // a rank that could not be higher because of the layer's width
};

// The quantities a report compares, in its order, as far as any of `runs` has them.
std::vector<Quantity> quantities_of(const std::vector<Run>& runs);

// The default reading of `quantity`, as far as it does not say otherwise: for the solution rank the
// first gamma, shift-free, with bias, on the test split; else the first of that name.  Nothing if
// there is none or it is not finite.  `equal_accuracy` is the training accuracy at which
// kRankAtEqualAccuracy is taken.
std::optional<Observation> observation(const Run& run, const Quantity& quantity,
                                       const std::optional<double>& equal_accuracy = {});
// The reading itself; nullptr if there is none.
const Reading* default_reading(const Run& run, const Quantity& quantity);

// "AUROC (energy, svhn)".
std::string label_of(const Quantity& quantity);

// An entry of a definition; `otherwise` or NaN if it is missing or of another kind.
bool definition_flag(const Definition& definition, const std::string& key, bool otherwise);
double definition_number(const Definition& definition, const std::string& key);

// A number in one line of metrics; NaN if it is missing, null or no number.
double metric(const nlohmann::ordered_json& line, const std::string& key);
// The line describes the initialisation, before any step.
bool is_initial(const nlohmann::ordered_json& line);

// Whether a run was trained to tell views of images apart, and not classes.
bool compares_views(const std::vector<Run>& runs);

// `seed`, else the first key that ends in `.seed`, else 0.
int64_t seed_of(const Run& run);
// `train.temperature`, else the first key that ends so; where a schedule moves it, that of the last
// line of metrics.  NaN if there is none.
double temperature_of(const Run& run);

// A setting for people: texts without quotes, short numbers.
std::string value_text(const Value& value);
// "train.lr" is "lr", "model.name" is "model".
std::string short_key(const std::string& key);

}  // namespace kelvin
