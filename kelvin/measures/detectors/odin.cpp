#include <torch/types.h>

#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/measures/detectors/detector.h"
#include "kelvin/measures/detectors/probability_scores.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

// Maximum softmax probability at many times the training temperature.  The other half of ODIN, a
// step of the input along the gradient, would need the network and is left out.
class Odin : public Detector {
 public:
  Odin(const MeasureContext& context, Settings& settings)
      : Detector("odin"), temperature_(context.temperature) {
    check_temperature("odin", temperature_);
    settings.read("scale", scale_);
    check(std::isfinite(scale_ * temperature_) && scale_ > 0, settings.full_name("scale"),
          ": must be above 0, and finite times the temperature of ", temperature_, ", got ",
          scale_);
  }

  Definition definition() const override {
    return {{"score", "log max softmax(M / (scale T))"},
            {"scale", scale_},
            {"temperature", temperature_},
            {"perturbed_inputs", false}};
  }

 private:
  torch::Tensor do_score(const Record& record) const override {
    return log_largest_probability(record.logits, scale_ * temperature_);
  }

  double temperature_;
  double scale_ = 1000;  // as published, for networks trained at T = 1
};

const bool odin_registered = detectors().add(
    "odin",
    {
        .summary = "maximum softmax probability at 1000 T; inputs are not perturbed",
        .reference = "Enhancing the reliability of OOD image detection in neural networks, "
                     "arXiv 1706.02690",
        .make = [](const MeasureContext& context,
                   Settings& settings) { return std::make_unique<Odin>(context, settings); },
    });

}  // namespace
}  // namespace kelvin
