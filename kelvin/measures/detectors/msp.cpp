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

  // The logarithm ranks alike; as -log(1 + the others' odds) it does not round to 0 for
  // confident samples, as log_softmax does from a margin of 37 T on.
  torch::Tensor score(const Record& record) const override {
    check_temperature("msp", temperature_);
    const auto logits = record.logits.to(torch::kFloat64);
    const auto [largest, winner] = logits.max(1, /*keepdim=*/true);
    const auto odds = ((logits - largest) / temperature_).exp().scatter(1, winner, 0);
    return -odds.sum(1).log1p();
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
