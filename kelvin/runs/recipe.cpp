#include "kelvin/runs/recipe.h"

#include <set>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/formats/toml_text.h"

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

std::vector<PlannedRun> expand_cases(const Config& base, const Json& cases,
                                     const std::string& origin) {
  if (cases.is_null()) return {{.name = "", .config = base}};
  std::vector<PlannedRun> runs;
  for (auto each : cases) {
    check(each.contains("name") && each["name"].is_string(), origin, ": [[case]] needs a name");
    PlannedRun run{.name = each["name"], .config = base};
    each.erase("name");
    run.config.merge(Config(flatten(each, origin)));
    runs.push_back(std::move(run));
  }
  return runs;
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
              .against = flatten(table["against"], origin)};
  check(claim.direction == "lower" || claim.direction == "higher", origin,
        ": claim.direction: must be \"lower\" or \"higher\", got \"", claim.direction, "\"");
  return claim;
}

}  // namespace

Recipe parse_recipe(std::string_view toml, const std::string& origin, const std::string& scale) {
  auto document = parse_toml(toml, origin);
  const auto scales = take(document, "scale");
  const auto cases = take(document, "case");
  const auto claims = take(document, "claim");
  const auto sweep = take(document, "sweep");

  Config base(flatten(document, origin));
  if (!scale.empty()) {
    std::vector<std::string> known;
    for (const auto& [name, ignored] : scales.items()) known.push_back(name);
    check(scales.contains(scale), origin, ": no scale '", scale,
          "'; there are: ", known.empty() ? "none" : join(known, ", "));
    check(scales[scale].is_object(), origin, ": scale.", scale, ": must be a table, got ",
          scales[scale].dump());
  }

  Recipe recipe{.title = title_of(toml), .runs = expand_cases(base, cases, origin), .claims = {}};
  Values grid = sweep.is_null() ? Values{} : flatten(sweep, origin);
  Config chosen;
  if (!scale.empty()) {
    // A scale may override settings and, under "sweep.", the lists of the grid.
    for (const auto& [key, value] : flatten(scales.at(scale), origin)) {
      if (key.starts_with("sweep.")) {
        grid[key.substr(6)] = value;
      } else {
        chosen.set(key, value);
      }
    }
  }
  for (auto& run : recipe.runs) run.config.merge(chosen);
  for (const auto& [key, choices] : grid)
    recipe.runs = expand_key(recipe.runs, key, choices, origin);
  for (auto& run : recipe.runs) {
    if (run.name.empty()) run.name = "run";
  }
  if (!claims.is_null()) {
    for (const auto& claim : claims) recipe.claims.push_back(claim_of(claim, origin));
  }
  return recipe;
}

}  // namespace kelvin
