#include "app/cli/measured_names.h"

#include <algorithm>
#include <map>
#include <vector>

#include "kelvin/core/text.h"
#include "kelvin/report/tables/run_values.h"

namespace kelvin {
namespace {

using Names = std::vector<std::string>;

// What each measure reads; a name that ends in '*' stands for all that begin so.
const std::map<std::string, Names>& readings_of_measures() {
  static const std::map<std::string, Names> readings = {
      {"accuracy", {"accuracy", "nll"}},
      {"alignment", {"alignment"}},
      {"attention_rank", {"attention_*"}},
      {"calibration", {"nll", "brier", "ece*", "mce"}},
      {"class_statistics", {"between_class_variance", "within_class_variance", "class_*"}},
      {"gradient_rank", {"gradient_*", "activation_*"}},
      {"layer_similarity", {"cka*"}},
      {"layer_spectrum",
       {"numerical_rank", "covariance_rank", "effective_rank", "rankme", "stable_rank",
        "participation_ratio", "singular_value"}},
      {"linear_probe", {"kappa*", "rho*", "ood_retained*", "probe_accuracy*"}},
      {"logits_norm", {"logits_norm", "logits_norm_over_t", "logits_norm_per_sample"}},
      {"loss_symmetry",
       {"entropy_ratio", "loss_spread", "loss_distance", "probability_cosine",
        "gradient_diversity"}},
      {"neural_collapse", {"nc0_*", "nc1_*", "nc2_*", "nc3_*", "nc4_*", "orthodev*"}},
      {"norm_growth",
       {"norm_*", "top_singular_*", "network_gain", "layer_top_singular_value", "weight_*"}},
      {"post_softmax_rank", {"post_softmax_*"}},
      {"solution_rank",
       {"solution_rank", "singular_value", "effective_rank", "rankme", "stable_rank",
        "participation_ratio"}}};
  return readings;
}

bool covers(const Names& names, const std::string& reading) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    if (!name.ends_with('*')) return name == reading;
    return reading.starts_with(name.substr(0, name.size() - 1));
  });
}

Names listed(const Config& config, const std::string& key) {
  if (!config.has(key) || !config.at(key).is_array()) return {};
  return config.at(key).get<Names>();
}

bool is_listed(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The measures of the run that have such a reading.
Names measures_of(const std::string& reading, const Config& resolved) {
  Names found;
  for (const auto& name : listed(resolved, "measure.names")) {
    const auto readings = readings_of_measures().find(name);
    if (readings != readings_of_measures().end() && covers(readings->second, reading)) {
      found.push_back(name);
    }
  }
  return found;
}

bool has_any(const Names& names, const Names& wanted) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return is_listed(wanted, name); });
}

bool is_of_detectors(const std::string& reading) {
  return covers({"auroc*", "aupr_*", "fpr95_*"}, reading);
}

std::string missing_detector(const std::string& detector, const Claim& claim,
                             const Config& resolved) {
  if (!is_of_detectors(claim.reading)) return "is of no detector";
  const auto names = listed(resolved, "measure.detectors");
  if (is_listed(names, detector) || is_listed(names, "all")) return "";
  return "'" + detector + "' is not among measure.detectors, " + join(names, ", ");
}

std::string missing_ood(const std::string& ood, const Claim& claim, const Config& resolved) {
  const auto names = listed(resolved, "data.ood");
  const bool is_of_ood =
      is_of_detectors(claim.reading) ||
      has_any(measures_of(claim.reading, resolved), {"linear_probe", "neural_collapse"});
  if (!is_of_ood) return "is of no OOD data";
  if (is_listed(names, ood) || ood == "near" || ood == "far") return "";
  return "'" + ood + "' is not among data.ood, " + join(names, ", ");
}

std::string missing_gamma(double gamma, const Claim& claim, const Config& resolved) {
  std::vector<double> gammas;
  for (const auto& measure : measures_of(claim.reading, resolved)) {
    const auto key = "measure." + measure + ".gamma";
    if (resolved.has(key)) gammas.push_back(resolved.at(key).get<double>());
    // Ranks of the logits are read at these as well.
    if (claim.reading == "solution_rank" || claim.reading == "post_softmax_rank") {
      gammas.insert(gammas.end(), {1e-2, 1e-3, 1e-4});
    }
  }
  if (gammas.empty()) return "has no gamma";
  if (std::find(gammas.begin(), gammas.end(), gamma) != gammas.end()) return "";
  std::sort(gammas.begin(), gammas.end());
  gammas.erase(std::unique(gammas.begin(), gammas.end()), gammas.end());
  Names texts;
  for (const double each : gammas) texts.push_back(short_number(each));
  return "is not read at " + short_number(gamma) + " but at " + join(texts, ", ");
}

std::string missing_layer(const std::string& layer, const Claim& claim, const Config& resolved,
                          const Names& layers) {
  const Names by_layer = {"alignment",      "attention_rank", "class_statistics",
                          "gradient_rank",  "linear_probe",   "layer_similarity",
                          "layer_spectrum", "norm_growth",    "neural_collapse"};
  if (!has_any(measures_of(claim.reading, resolved), by_layer)) return "is of no layer";
  // Blocks of attention and the input of the classifier have names of their own.
  if (has_any(measures_of(claim.reading, resolved), {"attention_rank", "neural_collapse"}))
    return "";
  if (layers.empty() || is_listed(layers, layer)) return "";
  return "'" + layer + "' is none of the model's: " + join(layers, ", ");
}

}  // namespace

std::string missing_place(const Claim& claim, const Config& resolved,
                          const std::vector<std::string>& layers) {
  // A measure that was added since is given the benefit of the doubt.
  const bool is_known =
      is_of_detectors(claim.reading) || !measures_of(claim.reading, resolved).empty();
  for (const auto& [key, value] : claim.of) {
    std::string why;
    if (claim.reading == kRankAtEqualAccuracy || claim.reading == "logits_norm_growth") {
      why = "is made of the metrics of training, which have no such thing";
    } else if (key == "split") {
      if (value != "train" && value != "test") why = "must be train or test";
    } else if (!is_known) {
      continue;
    } else if (key == "detector") {
      why = missing_detector(value, claim, resolved);
    } else if (key == "ood") {
      why = missing_ood(value, claim, resolved);
    } else if (key == "gamma") {
      why = missing_gamma(value, claim, resolved);
    } else if (key == "layer") {
      why = missing_layer(value, claim, resolved, layers);
    } else if (!has_any(measures_of(claim.reading, resolved), {"solution_rank"})) {
      why = "is for readings of solution_rank";
    }
    if (!why.empty()) return join({key, why}, ": ");
  }
  return "";
}

bool is_measured(const std::string& reading, const Config& resolved) {
  // From the metrics of every run.
  if (covers({kRankAtEqualAccuracy, "logits_norm_growth"}, reading)) return true;
  if (!listed(resolved, "measure.detectors").empty() && is_of_detectors(reading)) return true;
  const auto names = listed(resolved, "measure.names");
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const auto found = readings_of_measures().find(name);
    // One that was added since is given the benefit of the doubt.
    return found == readings_of_measures().end() || covers(found->second, reading);
  });
}

}  // namespace kelvin
