#include "app/cli/measured_names.h"

#include <algorithm>
#include <map>
#include <vector>

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

}  // namespace

bool is_measured(const std::string& reading, const Config& resolved) {
  // From the metrics of every run.
  if (covers({kRankAtEqualAccuracy, "logits_norm_growth"}, reading)) return true;
  const Names of_detectors = {"auroc*", "aupr_*", "fpr95_*"};
  if (!listed(resolved, "measure.detectors").empty() && covers(of_detectors, reading)) return true;
  const auto names = listed(resolved, "measure.names");
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const auto found = readings_of_measures().find(name);
    // One that was added since is given the benefit of the doubt.
    return found == readings_of_measures().end() || covers(found->second, reading);
  });
}

}  // namespace kelvin
