#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/measures/detectors/detector.h"
#include "kelvin/measures/detectors/probability_scores.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

// Minus the generalised entropy of the largest probabilities.
class GeneralisedEntropy : public Detector {
 public:
  GeneralisedEntropy(const MeasureContext& context, Settings& settings)
      : Detector("gen"), temperature_(context.temperature) {
    check_temperature("gen", temperature_);
    settings.read("gamma", gamma_);
    settings.read("top", top_);
    check(std::isfinite(gamma_) && gamma_ > 0, settings.full_name("gamma"),
          ": must be a finite number above 0, got ", gamma_);
    check(top_ >= 1, settings.full_name("top"), ": must be at least 1, got ", top_);
  }

  Definition definition() const override {
    return {
        {"score", "minus the sum of p^gamma (1 - p)^gamma over the largest p of softmax(M / T)"},
        {"gamma", gamma_},
        {"top", top_},
        {"temperature", temperature_}};
  }

 private:
  // In logarithms, so that neither p of an improbable class nor 1 - p of the winner rounds to 0.
  torch::Tensor do_score(const Record& record) const override {
    auto odds = class_odds(record.logits, temperature_);
    const auto count = std::min(top_, record.logits.size(1));
    odds.logarithms = std::get<0>(odds.logarithms.topk(count, 1));  // the winner comes first
    const auto logs = log_probabilities(odds);
    const auto of_winner = odds.log_others + logs.narrow(1, 0, 1);
    const auto of_others = (-logs.narrow(1, 1, count - 1).exp()).log1p();  // they have p <= 1/2
    const auto complements = torch::cat({of_winner, of_others}, 1);
    return -(gamma_ * (logs + complements)).exp().sum(1);
  }

  double temperature_;
  double gamma_ = 0.1;  // both as published
  int64_t top_ = 100;   // all classes if there are fewer
};

const bool gen_registered = detectors().add(
    "gen", {
               .summary = "minus the generalised entropy of the largest probabilities",
               .reference = "GEN: pushing the limits of softmax-based OOD detection, CVPR 2023",
               .make =
                   [](const MeasureContext& context, Settings& settings) {
                     return std::make_unique<GeneralisedEntropy>(context, settings);
                   },
           });

}  // namespace
}  // namespace kelvin
