#include "kelvin/report/tables/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "kelvin/core/text.h"
#include "kelvin/report/page/glossary.h"
#include "kelvin/report/tables/comparison.h"

namespace kelvin {
namespace {

std::optional<double> best_accuracy(const Run& run) {
  std::optional<double> best;
  for (const auto& line : run.metrics) {
    const double accuracy = metric(line, "train_accuracy");
    if (is_initial(line) || !std::isfinite(accuracy)) continue;
    best = std::max(best.value_or(accuracy), accuracy);
  }
  return best;
}

}  // namespace

std::optional<double> common_accuracy(const std::vector<Run>& runs) {
  std::optional<double> common;
  for (const auto& run : runs) {
    if (const auto best = best_accuracy(run)) common = std::min(common.value_or(*best), *best);
  }
  return common;
}

std::optional<Observation> rank_at_accuracy(const Run& run, double accuracy) {
  for (const auto& line : run.metrics) {
    if (is_initial(line) || !(metric(line, "train_accuracy") >= accuracy)) continue;
    const double rank = metric(line, "solution_rank");
    if (!std::isfinite(rank)) return std::nullopt;
    return Observation{.value = rank};
  }
  return std::nullopt;
}

namespace {

constexpr int64_t kEnoughSeeds = 3;

using RunList = std::vector<const Run*>;

bool matches(const Run& run, const Values& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& entry) {
    return run.config.has(entry.first) && run.config.at(entry.first) == entry.second;
  });
}

RunList matching(const std::vector<Run>& runs, const Values& wanted) {
  RunList found;
  for (const auto& run : runs) {
    if (matches(run, wanted)) found.push_back(&run);
  }
  return found;
}

std::set<std::string> varying_keys(const RunList& list) {
  std::vector<Run> configs;
  for (const auto* run : list)
    configs.push_back({.path = "",
                       .config = run->config,
                       .metadata = {},
                       .metrics = {},
                       .readings = {},
                       .scores = {}});
  const auto keys = differing_keys(configs);
  return {keys.begin(), keys.end()};
}

// Keys the claim leaves open that vary on both of its sides: it is judged once per choice of them.
std::vector<std::string> context_keys(const RunList& at, const RunList& against) {
  const auto one = varying_keys(at);
  const auto other = varying_keys(against);
  std::vector<std::string> both;
  std::set_intersection(one.begin(), one.end(), other.begin(), other.end(),
                        std::back_inserter(both));
  return both;
}

std::string context_of(const Run& run, const std::vector<std::string>& keys) {
  std::vector<std::string> parts;
  for (const auto& key : keys) {
    parts.push_back(short_key(key) + " " +
                    (run.config.has(key) ? value_text(run.config.at(key)) : "unset"));
  }
  return join(parts, ", ");
}

std::map<std::string, RunList> by_context(const RunList& list,
                                          const std::vector<std::string>& keys) {
  std::map<std::string, RunList> contexts;
  for (const auto* run : list) contexts[context_of(*run, keys)].push_back(run);
  return contexts;
}

std::string values_text(const Values& values) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : values) {
    parts.push_back(short_key(key) + " " + value_text(value));
  }
  return join(parts, ", ");
}

std::string statement_of(const Claim& claim, const Quantity& quantity, const std::string& context) {
  return label_of(quantity) + " is " + claim.direction + " at " + values_text(claim.at) +
         " than at " + values_text(claim.against) + (context.empty() ? "" : " (" + context + ")");
}

std::string opposite(const std::string& direction) {
  return direction == "lower" ? "higher" : "lower";
}

// The size of the difference, in words: "42 ± 5 lower"; percentages differ by points.
std::string amount_text(Summary difference, const Quantity& quantity) {
  const bool is_lower = difference.mean < 0;
  difference.mean = std::abs(difference.mean);
  auto text = mean_text(difference, quantity);
  if (term(quantity.name).is_fraction) text.replace(text.rfind('%'), 1, "points");
  return text + (is_lower ? " lower" : " higher");
}

struct Sides {
  SeedValues at;
  SeedValues against;
  bool repeats_a_seed = false;  // pairing by seed is not unique
  bool has_unfinished = false;
};

SeedValues measured_side(const RunList& list, const Quantity& quantity,
                         const std::optional<double>& accuracy, Sides& sides) {
  SeedValues measured;
  std::set<int64_t> seeds;
  for (const auto* run : list) {
    const auto seen = observation(*run, quantity, accuracy);
    if (!seen) continue;
    sides.repeats_a_seed |= !seeds.insert(seed_of(*run)).second;
    sides.has_unfinished |= run->status != RunStatus::finished;
    measured.seeds.push_back({.seed = seed_of(*run), .value = seen->value});
  }
  return measured;
}

// Counts the seeds in which the difference has the sign of the claim.
void count_seeds(const Sides& sides, Verdict& verdict) {
  for (const auto& at : sides.at.seeds) {
    for (const auto& against : sides.against.seeds) {
      if (at.seed != against.seed) continue;
      const double difference = at.value - against.value;
      ++verdict.seeds;
      const bool is_lower = verdict.claim.direction == "lower";
      if (is_lower ? difference < 0 : difference > 0) ++verdict.seeds_holding;
    }
  }
}

Outcome outcome_of(const Verdict& verdict) {
  const double sign = verdict.claim.direction == "lower" ? -1 : 1;
  const double mean = sign * verdict.difference.mean;
  if (verdict.seeds >= kEnoughSeeds) {
    if (mean - verdict.difference.half_width > 0) return Outcome::holds;
    if (mean + verdict.difference.half_width < 0) return Outcome::contradicted;
    return Outcome::not_shown;
  }
  return verdict.seeds_holding == verdict.seeds ? Outcome::seen : Outcome::not_shown;
}

std::string count_text(int64_t some, int64_t all) {
  return fmt::format("{} of {} seed{}", some, all, all == 1 ? "" : "s");
}

std::string sentence_of(const Verdict& verdict) {
  const auto amount = amount_text(verdict.difference, verdict.quantity);
  const auto holding = count_text(verdict.seeds_holding, verdict.seeds);
  switch (verdict.outcome) {
    case Outcome::holds:
      return "holds in " + holding + ": " + amount;
    case Outcome::seen:
      return "seen in " + holding + ": " + amount + "; fewer than three seeds do not show it";
    case Outcome::contradicted:
      return "contradicted in " + count_text(verdict.seeds - verdict.seeds_holding, verdict.seeds) +
             ": " + amount;
    case Outcome::not_measured:
      return "not measured";
    case Outcome::not_shown:
      break;
  }
  if (verdict.difference.smallest == 0 && verdict.difference.largest == 0) {
    return "not shown: no difference in " + count_text(verdict.seeds, verdict.seeds);
  }
  const auto seeds = verdict.claim.direction + " in " + holding + ", " + amount + " on average";
  if (verdict.seeds >= kEnoughSeeds) {
    return "not shown: the 95 % interval of the difference includes zero (" + seeds + ")";
  }
  if (verdict.seeds_holding == 0) {
    return "not shown: " + opposite(verdict.claim.direction) + " or equal in " +
           count_text(verdict.seeds, verdict.seeds) + " (" + amount + ")";
  }
  return "not shown: " + seeds;
}

Verdict judge(const Claim& claim, const Quantity& quantity, const std::string& context,
              const Sides& sides) {
  Verdict verdict{.claim = claim,
                  .quantity = quantity,
                  .context = context,
                  .statement = statement_of(claim, quantity, context),
                  .sentence = ""};
  if (sides.repeats_a_seed) {
    verdict.sentence = "not measured: more than one run per seed fits one side of the claim";
    return verdict;
  }
  const auto difference = paired_difference(sides.against, sides.at);
  if (!difference) {
    verdict.sentence = sides.at.seeds.empty() || sides.against.seeds.empty()
                           ? "not measured: one side has no value"
                           : "not measured: no seed has both values";
    return verdict;
  }
  verdict.difference = *difference;
  count_seeds(sides, verdict);
  verdict.outcome = outcome_of(verdict);
  verdict.sentence = sentence_of(verdict);
  if (sides.has_unfinished) verdict.sentence += " (some runs are not finished)";
  return verdict;
}

template <class T>
std::optional<T> said(const Claim& claim, const char* key) {
  const auto found = claim.of.find(key);
  return found == claim.of.end() ? std::nullopt : std::optional(found->second.template get<T>());
}

// The quantities of the runs that the claim's reading names; the bare name if none was measured.
std::vector<Quantity> named_quantities(const std::vector<Run>& runs, const Claim& claim) {
  std::vector<Quantity> fitting;
  for (const auto& quantity : quantities_of(runs)) {
    const bool is_train = quantity.split == "train";
    if (quantity.name == claim.reading && !is_train) fitting.push_back(quantity);
  }
  if (!fitting.empty()) return fitting;
  std::set<Quantity> others;
  for (const auto& run : runs) {
    for (const auto& reading : run.readings) {
      if (reading.name != claim.reading || reading.name == "solution_rank") continue;
      others.insert(
          {.name = reading.name, .split = "", .ood = reading.ood, .detector = reading.detector});
    }
  }
  if (others.empty()) others.insert({.name = claim.reading});
  return {others.begin(), others.end()};
}

// Of those the ones that the claim is about, with all it says of them.
std::vector<Quantity> claimed_quantities(const std::vector<Run>& runs, const Claim& claim) {
  const auto detector = said<std::string>(claim, "detector");
  const auto ood = said<std::string>(claim, "ood");
  auto quantities = named_quantities(runs, claim);
  std::erase_if(quantities, [&](const Quantity& quantity) {
    return (detector && quantity.detector != *detector) || (ood && quantity.ood != *ood);
  });
  if (quantities.empty()) {
    quantities = {
        {.name = claim.reading, .ood = ood.value_or(""), .detector = detector.value_or("")}};
  }
  for (auto& quantity : quantities) {
    if (const auto split = said<std::string>(claim, "split")) quantity.split = *split;
    quantity.layer = said<std::string>(claim, "layer").value_or("");
    quantity.gamma = said<double>(claim, "gamma");
    quantity.shift_free = said<bool>(claim, "shift_free");
    quantity.bias = said<bool>(claim, "bias");
  }
  return quantities;
}

}  // namespace

std::string name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::holds:
      return "holds";
    case Outcome::seen:
      return "seen";
    case Outcome::not_shown:
      return "not shown";
    case Outcome::contradicted:
      return "contradicted";
    case Outcome::not_measured:
      return "not measured";
  }
  return "";
}

std::vector<Verdict> verdicts(const std::vector<Run>& runs, const std::vector<Claim>& claims) {
  const auto accuracy = common_accuracy(runs);
  std::vector<Verdict> all;
  for (const auto& claim : claims) {
    const auto at = matching(runs, claim.at);
    const auto against = matching(runs, claim.against);
    const auto keys = context_keys(at, against);
    auto at_by_context = by_context(at, keys);
    auto against_by_context = by_context(against, keys);
    if (at_by_context.empty()) at_by_context[""] = {};
    for (const auto& quantity : claimed_quantities(runs, claim)) {
      for (const auto& [context, at_runs] : at_by_context) {
        Sides sides;
        sides.at = measured_side(at_runs, quantity, accuracy, sides);
        sides.against = measured_side(against_by_context[context], quantity, accuracy, sides);
        all.push_back(judge(claim, quantity, context, sides));
      }
    }
  }
  return all;
}

Table verdict_table(const std::vector<Verdict>& verdicts) {
  Table table{.title = "", .columns = {{.name = "claim"}, {.name = "verdict"}}, .rows = {}};
  for (const auto& verdict : verdicts) table.rows.push_back({verdict.statement, verdict.sentence});
  return table;
}

}  // namespace kelvin
