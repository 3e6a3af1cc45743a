#include <torch/types.h>

#include "kelvin/measures/detectors/detector.h"
#include "kelvin/measures/detectors/probability_scores.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

// Minus the entropy of the probabilities at the training temperature.
class Entropy : public Detector {
 public:
  explicit Entropy(const MeasureContext& context)
      : Detector("entropy"), temperature_(context.temperature) {
    check_temperature("entropy", temperature_);
  }

  Definition definition() const override {
    return {{"score", "sum p log p, p = softmax(M / T)"}, {"temperature", temperature_}};
  }

 private:
  torch::Tensor do_score(const Record& record) const override {
    return -entropy(class_odds(record.logits, temperature_));
  }

  double temperature_;
};

const bool entropy_registered = detectors().add(
    "entropy",
    {
        .summary = "minus the entropy of the probabilities",
        .reference = "Simple and scalable predictive uncertainty estimation, arXiv 1612.01474",
        .make = [](const MeasureContext& context,
                   Settings&) { return std::make_unique<Entropy>(context); },
    });

}  // namespace
}  // namespace kelvin
