#include <torch/types.h>

#include "kelvin/math/softmax.h"
#include "kelvin/measures/detectors/detector.h"

namespace kelvin {
namespace {

// Maximum softmax probability at the training temperature.
class MaximumProbability : public Detector {
 public:
  explicit MaximumProbability(const MeasureContext& context) : temperature_(context.temperature) {}

  void fit(const Record&) override {}

  // The logarithm ranks alike and does not round to 1 for confident samples.
  torch::Tensor score(const Record& record) const override {
    return log_softmax(record.logits.to(torch::kFloat64), {.temperature = temperature_}).amax(1);
  }

  Definition definition() const override {
    return {{"score", "log max softmax(M / T)"}, {"temperature", temperature_}};
  }

 private:
  double temperature_;
};

const bool registered = detectors().add(
    "msp",
    {
        .summary = "maximum softmax probability",
        .reference = "A baseline for detecting misclassified and OOD examples, arXiv 1610.02136",
        .make = [](const MeasureContext& context,
                   Settings&) { return std::make_unique<MaximumProbability>(context); },
    });

}  // namespace
}  // namespace kelvin
