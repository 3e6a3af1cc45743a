#include <torch/types.h>

#include <cmath>
#include <limits>

#include "kelvin/core/check.h"
#include "kelvin/measures/detectors/detector.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

// How far a centred feature points along the weights of the predicted class, and how large it is.
class CollapseInspired : public Detector {
 public:
  explicit CollapseInspired(Settings& settings) : Detector("nci", {.weight = true}) {
    settings.read("alpha", alpha_);
    check(std::isfinite(alpha_) && alpha_ >= 0, settings.full_name("alpha"),
          ": must be a finite number not below 0, got ", alpha_);
  }

  Definition definition() const override {
    return {{"score", "<w_max, h - mean> / ||h - mean|| + alpha ||h||_1"}, {"alpha", alpha_}};
  }

 private:
  void do_fit(const Record& id_train) override {
    weight_ = id_train.weight;
    mean_ = id_train.features.mean(0);
    rounding_ = static_cast<double>(id_train.features.size(0)) *
                std::numeric_limits<double>::epsilon() * mean_.norm().item<double>();
  }

  torch::Tensor do_score(const Record& record) const override {
    const auto predicted = record.logits.argmax(1);
    return row_numbers(record.features.size(0), [&](int64_t begin, int64_t end) {
      const auto features = record.features.slice(0, begin, end);
      const auto centred = features - mean_;
      const auto length = centred.norm(2, 1);
      const auto own = weight_.index_select(0, predicted.slice(0, begin, end));
      const auto along = (centred * own).sum(1) / length;
      // The mean itself points nowhere.
      const auto proximity = torch::where(length <= rounding_, torch::zeros_like(along), along);
      return proximity + alpha_ * features.norm(1, 1);
    });
  }

  double alpha_ = 1e-4;  // as in OpenOOD, whose search goes up to 0.1
  torch::Tensor weight_;
  torch::Tensor mean_;
  double rounding_ = 0;  // what counts as no distance from the mean
};

const bool nci_registered = detectors().add(
    "nci",
    {
        .summary = "proximity to the weights of the predicted class, plus the feature's norm",
        .reference = "OOD through the lens of neural collapse, arXiv 2311.01479",
        .make = [](const MeasureContext&,
                   Settings& settings) { return std::make_unique<CollapseInspired>(settings); },
    });

}  // namespace
}  // namespace kelvin
