#include <torch/types.h>

#include "kelvin/measures/detectors/detector.h"
#include "kelvin/measures/detectors/probability_scores.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

// Maximum softmax probability at the training temperature.
class MaximumProbability : public Detector {
 public:
  explicit MaximumProbability(const MeasureContext& context)
      : Detector("msp"), temperature_(context.temperature) {
    check_temperature("msp", temperature_);
  }

  Definition definition() const override {
    return {{"score", "log max softmax(M / T)"}, {"temperature", temperature_}};
  }

 private:
  // The logarithm ranks alike, and it does not round to the same number for all confident samples.
  torch::Tensor do_score(const Record& record) const override {
    return log_largest_probability(record.logits, temperature_);
  }

  double temperature_;
};

const bool msp_registered = detectors().add(
    "msp",
    {
        .summary = "maximum softmax probability",
        .reference = "A baseline for detecting misclassified and OOD examples, arXiv 1610.02136",
        .make = [](const MeasureContext& context,
                   Settings&) { return std::make_unique<MaximumProbability>(context); },
    });

}  // namespace
}  // namespace kelvin
