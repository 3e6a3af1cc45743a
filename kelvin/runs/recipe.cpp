#include "kelvin/runs/recipe.h"

#include <set>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/formats/toml_text.h"
#include "kelvin/runs/tuning.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

std::string title_of(std::string_view toml) {
  if (!toml.starts_with("#")) return "";
  auto line = toml.substr(1, toml.find('\n') - 1);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return std::string(line);
}

// Takes the table `key` out of the document; empty if it is not there.
Json take(Json& document, const std::string& key) {
  Json taken = document.value(key, Json());
  document.erase(key);
  return taken;
}

std::string text_of(const Value& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

constexpr std::string_view kSweep = "sweep.";
constexpr std::string_view kTune = "tune.";
constexpr auto kSeed = "seed";
constexpr auto kOnlyRun = "run";  // the name of what nothing sets apart

// A case before its lists are multiplied out.
struct PlannedCase {
  PlannedRun run;
  Values grid;
  Values tune = {};
};

// Keys under "sweep." are lists of the grid, those under "tune." say what is chosen, others are
// settings.
void apply_values(const Values& values, PlannedCase& planned) {
  for (const auto& [key, value] : values) {
    if (key.starts_with(kSweep)) {
      planned.grid[key.substr(kSweep.size())] = value;
    } else if (key.starts_with(kTune)) {
      planned.tune[key.substr(kTune.size())] = value;
    } else {
      planned.run.config.set(key, value);
    }
  }
}

// Takes the name out of a table of [[case]].
std::string take_name(Json& table, const std::string& origin) {
  check(table.is_object() && table.contains("name") && table["name"].is_string(), origin,
        ": [[case]] needs a name");
  std::string name = table["name"];
  table.erase("name");
  return name;
}

std::vector<PlannedCase> planned_cases(const PlannedCase& base, const Json& cases,
                                       const std::string& origin) {
  if (cases.is_null()) return {base};
  std::vector<PlannedCase> all;
  for (auto each : cases) {
    auto planned = base;
    planned.run.name = take_name(each, origin);
    planned.run.case_name = planned.run.name;
    apply_values(flatten(each, origin), planned);
    all.push_back(std::move(planned));
  }
  return all;
}

// What a scale changes in all cases, then what it changes in single ones.
void apply_scale(Json scale, const std::string& origin, std::vector<PlannedCase>& cases) {
  const auto of_cases = take(scale, "case");
  const auto of_all = flatten(scale, origin);
  for (auto& planned : cases) apply_values(of_all, planned);
  if (of_cases.is_null()) return;
  for (auto each : of_cases) {
    const auto name = take_name(each, origin);
    const auto values = flatten(each, origin);
    bool is_found = false;
    for (auto& planned : cases) {
      if (planned.run.case_name != name) continue;
      apply_values(values, planned);
      is_found = true;
    }
    check(is_found, origin, ": a scale changes the case '", name, "', which there is not");
  }
}

std::vector<PlannedRun> expand_key(const std::vector<PlannedRun>& runs, const std::string& key,
                                   const Value& choices, const std::string& origin) {
  check(choices.is_array() && !choices.empty(), origin, ": sweep.", key,
        ": must be a list of values, got ", choices.dump());
  std::vector<PlannedRun> expanded;
  for (const auto& run : runs) {
    for (const auto& choice : choices) {
      auto variant = run;
      const auto short_key = key.substr(key.rfind('.') + 1);
      variant.name += (run.name.empty() ? "" : ",") + short_key + "=" + text_of(choice);
      variant.config.set(key, choice);
      expanded.push_back(std::move(variant));
    }
  }
  return expanded;
}

std::vector<PlannedRun> expanded_runs(const PlannedRun& run, const Values& grid,
                                      const std::string& origin) {
  std::vector<PlannedRun> runs = {run};
  for (const auto& [key, choices] : grid) runs = expand_key(runs, key, choices, origin);
  return runs;
}

void check_tunable(const PlannedCase& planned, const TuneSettings& tune,
                   const std::string& origin) {
  const auto& name = planned.run.case_name;
  const auto where = origin + (name.empty() ? ": " : ": case '" + name + "': ");
  check(!planned.grid.contains(tune.key), where, tune.key,
        ": is both swept over and tuned; it can be one of them");
  check(tune.key != kSeed, where, "seed: cannot be tuned");
  const auto swept = planned.grid.find(kSeed);
  auto seeds = swept != planned.grid.end() ? swept->second : Value::array();
  if (seeds.empty()) {
    seeds.push_back(planned.run.config.has(kSeed) ? planned.run.config.at(kSeed) : Value(0));
  }
  check(std::find(seeds.begin(), seeds.end(), Value(tune.seed)) == seeds.end(), where,
        "tune.seed: must not be among the seeds of the table, ", seeds.dump(), ", got ", tune.seed);
}

// Of what tells the runs of a case apart but for the seed.
std::string place_of(const PlannedRun& run, const Values& grid) {
  auto name = run.case_name;
  for (const auto& [key, choices] : grid) {
    if (key == kSeed) continue;
    name += (name.empty() ? "" : ",") + key.substr(key.rfind('.') + 1) + "=" +
            text_of(run.config.at(key));
  }
  return name.empty() ? kOnlyRun : name;
}

// Adds the tunings of the case to the recipe, and those of its runs for which a value is chosen.
void add_tuned_runs(const PlannedCase& planned, const ChosenValue& chosen,
                    const std::string& origin, Recipe& recipe) {
  const auto tune = tune_settings(planned.tune, origin);
  check_tunable(planned, tune, origin);
  auto grid_of_trials = planned.grid;
  grid_of_trials[kSeed] = Value::array({tune.seed});
  std::map<std::string, std::optional<Value>> values;  // by place
  for (const auto& run : expanded_runs(planned.run, grid_of_trials, origin)) {
    Tuning tuning{.name = place_of(run, planned.grid), .key = tune.key};
    for (auto& trial : expand_key({run}, tune.key, tune.grid, origin)) {
      trial.config = trial_config(run.config, tune, trial.config.at(tune.key));
      tuning.trials.push_back(std::move(trial));
    }
    values[tuning.name] = chosen ? chosen(tuning) : std::nullopt;
    recipe.tunings.push_back(std::move(tuning));
  }
  for (const auto& run : expanded_runs(planned.run, planned.grid, origin)) {
    const auto place = place_of(run, planned.grid);
    const auto& value = values.at(place);
    if (!value) continue;
    auto tuned = expand_key({run}, tune.key, Value::array({*value}), origin).front();
    tuned.tuning = place;
    recipe.runs.push_back(std::move(tuned));
  }
}

// What a claim says of its reading beside the name.
Values place_of_claim(const Json& table, const std::string& origin) {
  const std::map<std::string, std::string> kinds = {
      {"layer", "a text"},   {"split", "a text"},         {"detector", "a text"}, {"ood", "a text"},
      {"gamma", "a number"}, {"shift_free", "a boolean"}, {"bias", "a boolean"}};
  const std::set<std::string> others = {"reading", "direction", "at", "against"};
  Values place;
  for (const auto& [key, value] : table.items()) {
    if (others.contains(key)) continue;
    const auto kind = kinds.find(key);
    check(kind != kinds.end(), origin, ": claim.", key,
          ": no such key; there are: ", join({others.begin(), others.end()}, ", "),
          ", and of the reading layer, split, detector, ood, gamma, shift_free, bias");
    const bool is_right = kind->second == "a text"     ? value.is_string()
                          : kind->second == "a number" ? value.is_number()
                                                       : value.is_boolean();
    check(is_right, origin, ": claim.", key, ": must be ", kind->second, ", got ", value.dump());
    place[key] = Value(value);
  }
  return place;
}

Claim claim_of(const Json& table, const std::string& origin) {
  for (const char* key : {"reading", "direction", "at", "against"}) {
    check(table.contains(key), origin, ": [[claim]] needs '", key, "'");
  }
  for (const char* key : {"reading", "direction"}) {
    check(table[key].is_string(), origin, ": claim.", key, ": must be a text, got ",
          table[key].dump());
  }
  for (const char* key : {"at", "against"}) {
    check(table[key].is_object(), origin, ": claim.", key, ": must be a table, got ",
          table[key].dump());
  }
  Claim claim{.reading = table["reading"],
              .direction = table["direction"],
              .at = flatten(table["at"], origin),
              .against = flatten(table["against"], origin),
              .of = place_of_claim(table, origin)};
  check(claim.direction == "lower" || claim.direction == "higher", origin,
        ": claim.direction: must be \"lower\" or \"higher\", got \"", claim.direction, "\"");
  return claim;
}

}  // namespace

std::optional<Value> first_of_grid(const Tuning& tuning) {
  return std::make_optional(tuning.trials.front().config.at(tuning.key));
}

Recipe parse_recipe(std::string_view toml, const std::string& origin, const std::string& scale,
                    const Config& overrides, const ChosenValue& chosen) {
  auto document = parse_toml(toml, origin);
  const auto scales = take(document, "scale");
  const auto cases = take(document, "case");
  const auto claims = take(document, "claim");
  const auto sweep = take(document, "sweep");

  Recipe recipe{.title = title_of(toml), .runs = {}, .claims = {}};
  for (const auto& [name, ignored] : scales.items()) recipe.scales.push_back(name);
  check(sweep.is_null() || !sweep.empty(), origin, ": [sweep]: names nothing to sweep over");
  PlannedCase base{.run = {.name = "", .config = {}},
                   .grid = sweep.is_null() ? Values{} : flatten(sweep, origin)};
  apply_values(flatten(document, origin), base);
  auto planned = planned_cases(base, cases, origin);
  if (!scale.empty()) {
    check(scales.contains(scale), origin, ": no scale '", scale,
          "'; there are: ", recipe.scales.empty() ? "none" : join(recipe.scales, ", "));
    check(scales[scale].is_object(), origin, ": scale.", scale, ": must be a table, got ",
          scales[scale].dump());
    apply_scale(scales[scale], origin, planned);
  }
  for (auto& each : planned) {
    apply_values(overrides.values(), each);
    for (const auto& [key, choices] : each.grid) {
      check(!overrides.has(key), origin, ": ", key, ": is swept over; change its list: sweep.", key,
            "=[...]");
    }
    if (!each.tune.empty()) {
      for (const auto& [key, ignored] : each.tune) {
        check(!overrides.has(key) || key == kSeed, origin, ": ", key,
              ": is tuned; change its grid: tune.", key, "=[...]");
      }
      add_tuned_runs(each, chosen, origin, recipe);
      continue;
    }
    const auto runs = expanded_runs(each.run, each.grid, origin);
    recipe.runs.insert(recipe.runs.end(), runs.begin(), runs.end());
  }
  for (auto& run : recipe.runs) {
    if (run.name.empty()) run.name = kOnlyRun;
  }
  if (!claims.is_null()) {
    for (const auto& claim : claims) recipe.claims.push_back(claim_of(claim, origin));
  }
  return recipe;
}

}  // namespace kelvin
