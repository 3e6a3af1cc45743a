#include "app/cli/sweep_plan.h"

#include <fnmatch.h>

#include <algorithm>
#include <map>

#include "app/cli/config_paths.h"
#include "app/cli/measured_names.h"
#include "app/cli/metadata.h"
#include "app/cli/recipe_runs.h"
#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/text.h"
#include "kelvin/experiment/tasks/plan.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr auto kDefaultScale = "laptop";
constexpr auto kTuningFolder = "-tuning";  // behind the name of the folder of the runs

std::string text_of_recipe(const std::string& name) {
  const auto& builtin = builtin_recipes();
  if (const auto found = builtin.find(name); found != builtin.end()) return found->second;
  std::vector<std::string> names;
  names.reserve(builtin.size());
  for (const auto& [each, text] : builtin) names.push_back(each);
  check(fs::is_regular_file(name), "no recipe named '", name,
        "', nor a file of that name; there are: ", join(names, ", "));
  return read_file(name);
}

// Every message about a run says which one it is.
Config resolved_of(const PlannedRun& run, const std::string& recipe, const ComputeLibrary& library,
                   const fs::path& data_folder) {
  auto config = run.config;
  try {
    make_paths_absolute(config, data_folder);
    return library.run(ResolveRequest{.config = config});
  } catch (const Error& error) {
    check(false, recipe, ": run '", run.name, "': ", error.what());
  }
  return config;
}

std::vector<Config> resolved_runs(const std::vector<PlannedRun>& runs, const std::string& recipe,
                                  const SweepPlaces& places) {
  std::vector<Config> resolved;
  resolved.reserve(runs.size());
  for (const auto& run : runs) {
    resolved.push_back(resolved_of(run, recipe, places.library, places.data_folder));
  }
  return resolved;
}

bool fits(const Config& config, const Values& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& entry) {
    return config.has(entry.first) && config.at(entry.first) == entry.second;
  });
}

Config model_section(const Config& resolved) {
  Config model;
  for (const auto& [key, value] : resolved.values()) {
    if (key.starts_with("model.")) model.set(key, value);
  }
  return model;
}

// The names of the layers of a model, by which a claim may name one; none if it cannot be made for
// common images, so that nothing is known.
std::vector<std::string> layers_of(const Config& model, const SweepPlaces& places) {
  std::vector<std::string> names;
  try {
    const auto described = places.library.run(
        DescribeModelRequest{.config = model, .shape = {3, 32, 32}, .classes = 10});
    for (const auto& layer : described.at("layers")) names.push_back(layer.at("name"));
  } catch (const Error&) {  // the runs themselves will say whether something is wrong with it
  }
  return names;
}

void check_claims(const PlannedSweep& sweep, const SweepPlaces& places) {
  std::map<std::string, std::vector<std::string>> layers;  // by model
  for (const auto& claim : sweep.recipe.claims) {
    for (const auto* side : {&claim.at, &claim.against}) {
      bool is_planned = false;
      for (const auto& config : sweep.resolved) {
        if (!fits(config, *side)) continue;
        is_planned = true;
        check(is_measured(claim.reading, config), sweep.name, ": claim on '", claim.reading,
              "': no measure of its runs reads that; measure.names are ",
              config.at("measure.names").dump());
        std::vector<std::string> names;
        if (claim.of.contains("layer")) {
          const auto model = model_section(config);
          auto [found, is_new] = layers.try_emplace(model.to_toml());
          if (is_new) found->second = layers_of(model, places);
          names = found->second;
        }
        const auto missing = missing_place(claim, config, names);
        check(missing.empty(), sweep.name, ": claim on '", claim.reading, "': ", missing);
      }
      check(is_planned, sweep.name, ": claim on '", claim.reading, "': no run has ",
            Value(*side).dump());
    }
  }
}

// A tuned run may be a strict one once more: there is no telling before its value is chosen.
void check_distinct(const PlannedSweep& sweep) {
  std::map<std::string, size_t> places;  // by config
  for (size_t i = 0; i < sweep.resolved.size(); ++i) {
    const auto& run = sweep.recipe.runs[i];
    const auto [place, is_new] = places.emplace(config_hash(sweep.resolved[i]), i);
    const auto& other = sweep.recipe.runs[place->second];
    check(is_new || run.tuning.empty() != other.tuning.empty(), sweep.name, ": runs '", other.name,
          "' and '", run.name, "' have one config");
  }
}

bool is_wanted(const std::string& name, const std::string& only) {
  return only.empty() || only == name || ::fnmatch(only.c_str(), name.c_str(), 0) == 0;
}

std::vector<size_t> selected_runs(const PlannedSweep& sweep) {
  const auto& only = sweep.request.only;
  std::vector<size_t> matching;
  for (size_t i = 0; i < sweep.recipe.runs.size(); ++i) {
    if (is_wanted(sweep.recipe.runs[i].name, only)) matching.push_back(i);
  }
  check(!matching.empty() || !sweep.undecided.empty(), "--only: no run of ", sweep.name,
        " is called '", only, "'",
        sweep.recipe.runs.empty() ? "" : "; the first is '" + sweep.recipe.runs.front().name + "'");
  return matching;
}

std::vector<size_t> runs_of_shard(const PlannedSweep& sweep) {
  const auto& request = sweep.request;
  check(request.shards >= 1 && request.shard >= 1 && request.shard <= request.shards,
        "--shard: must be i/n with i from 1 to n, got ", request.shard, "/", request.shards);
  std::vector<size_t> chosen;
  for (size_t i = 0; i < sweep.selected.size(); ++i) {
    if (static_cast<int64_t>(i) % request.shards == request.shard - 1) {
      chosen.push_back(sweep.selected[i]);
    }
  }
  return chosen;
}

Config overrides_of(const SweepRequest& request) {
  Config overrides;
  for (const auto& assignment : request.overrides) overrides.apply_override(assignment);
  return overrides;
}

std::string chosen_scale(const SweepRequest& request, const std::string& text) {
  if (!request.scale.empty()) return request.scale;
  const auto scales = parse_recipe(text, request.recipe, "").scales;
  const bool has_default = std::find(scales.begin(), scales.end(), kDefaultScale) != scales.end();
  return has_default ? kDefaultScale : "";
}

fs::path root_of(const PlannedSweep& sweep, const SweepPlaces& places) {
  const auto output = fs::absolute(places.output.empty() ? "runs" : places.output);
  auto root = output.lexically_normal();
  if (!root.has_filename()) root = root.parent_path();  // "out/"
  return places.is_output_of_one ? root : root / sweep_folder(sweep);
}

// Beside the runs, so that reports on these do not count trials among them.
fs::path root_of_trials(const fs::path& root) { return root.string() + kTuningFolder; }

std::vector<PlannedTuning> found_tunings(const PlannedSweep& sweep, const SweepPlaces& places) {
  std::vector<PlannedTuning> found;
  for (const auto& tuning : sweep.recipe.tunings) {
    found.push_back(planned_tuning(tuning, resolved_runs(tuning.trials, sweep.name, places),
                                   root_of_trials(sweep.root), places.kept));
  }
  return found;
}

// The trials in place of the runs.
void plan_trials(PlannedSweep& sweep, const SweepPlaces& places) {
  check(!sweep.tunings.empty(), sweep.name, ": --tune: has no case that says what to tune");
  sweep.root = root_of_trials(sweep.root);
  sweep.recipe.runs.clear();
  for (const auto& tuning : sweep.recipe.tunings) {
    sweep.recipe.runs.insert(sweep.recipe.runs.end(), tuning.trials.begin(), tuning.trials.end());
  }
  check_names(sweep.recipe);
  sweep.resolved = resolved_runs(sweep.recipe.runs, sweep.name, places);
}

// "mlp-tuned,seed=1,temperature=30.0,lr=0.1" without the setting that is not known yet.
std::string without_last(const std::string& name) { return name.substr(0, name.rfind(',')); }

// Each tuned run with the value that its trials tell; those of which they do not are left out.
void plan_tuned(PlannedSweep& sweep, const SweepPlaces& places) {
  if (sweep.tunings.empty()) return;
  std::map<std::string, std::optional<Value>> values;  // by tuning
  const auto& only = sweep.request.only;
  for (const auto& planned : sweep.tunings) {
    const auto& tuning = planned.tuning;
    if (planned.best) values[tuning.name] = tuning.trials[*planned.best].config.at(tuning.key);
    const auto& runs = sweep.recipe.runs;
    const bool is_asked_for = std::any_of(runs.begin(), runs.end(), [&](const PlannedRun& run) {
      return run.tuning == tuning.name &&
             (is_wanted(run.name, only) || is_wanted(without_last(run.name), only));
    });
    if (!planned.best && is_asked_for) sweep.undecided.push_back(tuning.name);
  }
  const auto& request = sweep.request;
  auto recipe = parse_recipe(sweep.text, request.recipe, request.scale, overrides_of(request),
                             [&](const Tuning& tuning) { return values[tuning.name]; });
  sweep.recipe.runs.swap(recipe.runs);
  sweep.resolved = resolved_runs(sweep.recipe.runs, sweep.name, places);
}

}  // namespace

std::function<Config(const Config&)> resolver_of(const ComputeLibrary& library) {
  return [library](const Config& config) { return library.run(ResolveRequest{.config = config}); };
}

PlannedSweep plan_sweep(const SweepRequest& request, const SweepPlaces& places) {
  PlannedSweep sweep{.request = request,
                     .name = fs::path(request.recipe).stem().string(),
                     .text = text_of_recipe(request.recipe),
                     .root = {},
                     .recipe = {}};
  sweep.request.scale = chosen_scale(request, sweep.text);
  // With any value of tuned cases first: what is wrong with a recipe does not wait for trials.
  sweep.recipe = parse_recipe(sweep.text, request.recipe, sweep.request.scale,
                              overrides_of(request), first_of_grid);
  check_names(sweep.recipe);
  sweep.resolved = resolved_runs(sweep.recipe.runs, sweep.name, places);
  check_distinct(sweep);
  check_claims(sweep, places);
  sweep.root = root_of(sweep, places);
  sweep.tunings = found_tunings(sweep, places);
  if (request.is_tuning) {
    plan_trials(sweep, places);
  } else {
    plan_tuned(sweep, places);
  }
  sweep.selected = selected_runs(sweep);
  sweep.chosen = runs_of_shard(sweep);
  return sweep;
}

void place_runs(std::vector<PlannedSweep>& sweeps) {
  std::map<std::string, fs::path> homes;  // by config
  for (auto& sweep : sweeps) {
    sweep.folders.clear();
    std::map<std::string, fs::path> started;  // of this sweep, by config
    for (size_t i = 0; i < sweep.recipe.runs.size(); ++i) {
      sweep.folders.push_back(sweep.root / sweep.recipe.runs[i].name);
      const auto& folder = sweep.folders.back();
      if (is_run(folder)) started.emplace(config_hash(sweep.resolved[i]), folder);
    }
    for (const auto place : sweep.selected) {
      const auto hash = config_hash(sweep.resolved[place]);
      auto& folder = sweep.folders[place];
      // What --only has begun under another name goes on there.
      const auto begun = started.find(hash);
      if (begun != started.end()) folder = begun->second;
      folder = homes.emplace(hash, folder).first->second;
    }
  }
}

std::string sweep_command(const PlannedSweep& sweep, const std::string& only) {
  std::vector<std::string> words = {"kelvin", "sweep", sweep.request.recipe};
  if (!sweep.request.scale.empty()) {
    words.insert(words.end(), {"--scale", sweep.request.scale});
  }
  words.insert(words.end(), sweep.request.overrides.begin(), sweep.request.overrides.end());
  if (sweep.request.is_tuning) words.emplace_back("--tune");
  if (!only.empty()) words.insert(words.end(), {"--only", only});
  return shell_command(words);
}

std::string sweep_folder(const PlannedSweep& sweep) {
  auto name = sweep.name + (sweep.request.scale.empty() ? "" : "-" + sweep.request.scale);
  for (auto setting : sweep.request.overrides) {
    // More seeds are more runs beside the others; other settings are other runs.
    if (setting.starts_with("sweep.")) continue;
    std::replace(setting.begin(), setting.end(), '/', '_');
    name += "," + setting;
  }
  return name;
}

std::string undecided_text(const PlannedSweep& sweep) {
  std::string key;
  std::vector<std::string> open;
  std::vector<std::string> lost;
  for (const auto& [tuning, results, best] : sweep.tunings) {
    const auto& undecided = sweep.undecided;
    if (std::find(undecided.begin(), undecided.end(), tuning.name) == undecided.end()) continue;
    key = tuning.key;
    const bool all_failed = std::all_of(results.begin(), results.end(),
                                        [](const auto& result) { return !result.failure.empty(); });
    (all_failed ? lost : open).push_back(tuning.name);
  }
  std::vector<std::string> parts;
  if (!lost.empty())
    parts.push_back("training fails with every " + key + " for " + join(lost, ", "));
  if (!open.empty()) {
    auto trials = sweep;
    trials.request.is_tuning = true;
    parts.push_back("no " + key + " is chosen yet for " + join(open, ", ") +
                    ", which is done by: " + sweep_command(trials));
  }
  return parts.empty() ? "" : sweep.name + ": " + join(parts, "; ");
}

}  // namespace kelvin
