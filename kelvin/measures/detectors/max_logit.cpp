#include <torch/types.h>

#include "kelvin/measures/detectors/detector.h"

namespace kelvin {
namespace {

// The largest logit.  A temperature would divide all of them alike, so it plays no part.
class MaximumLogit : public Detector {
 public:
  MaximumLogit() : Detector("max_logit") {}

  Definition definition() const override { return {{"score", "max M"}}; }

 private:
  torch::Tensor do_score(const Record& record) const override { return record.logits.amax(1); }
};

const bool max_logit_registered = detectors().add(
    "max_logit",
    {
        .summary = "largest logit",
        .reference =
            "Scaling out-of-distribution detection for real-world settings, arXiv 1911.11132",
        .make = [](const MeasureContext&, Settings&) { return std::make_unique<MaximumLogit>(); },
    });

}  // namespace
}  // namespace kelvin
