#include <torch/types.h>

#include "kelvin/measures/detectors/detector.h"
#include "kelvin/measures/detectors/probability_scores.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

// Minus the free energy of the logits at the training temperature.
class Energy : public Detector {
 public:
  explicit Energy(const MeasureContext& context)
      : Detector("energy"), temperature_(context.temperature) {
    check_temperature("energy", temperature_);
  }

  Definition definition() const override {
    return {{"score", "T logsumexp(M / T)"}, {"temperature", temperature_}};
  }

 private:
  torch::Tensor do_score(const Record& record) const override {
    return energy(record.logits, temperature_);
  }

  double temperature_;
};

const bool energy_registered = detectors().add(
    "energy", {
                  .summary = "minus the free energy: a smooth maximum of the logits",
                  .reference = "Energy-based out-of-distribution detection, arXiv 2010.03759",
                  .make = [](const MeasureContext& context,
                             Settings&) { return std::make_unique<Energy>(context); },
              });

}  // namespace
}  // namespace kelvin
