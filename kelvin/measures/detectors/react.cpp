#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "kelvin/core/check.h"
#include "kelvin/measures/detectors/detector.h"
#include "kelvin/measures/detectors/probability_scores.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

// Of all entries, interpolated between neighbours as NumPy does it.  torch::quantile takes no more
// than 16 million, which is 8000 samples of 2048 features.
double quantile_of(const torch::Tensor& values, double quantile) {
  const auto reordered = values.flatten().clone();
  auto* const begin = reordered.data_ptr<double>();
  auto* const end = begin + reordered.numel();
  const double place = quantile * static_cast<double>(reordered.numel() - 1);
  auto* const lower = begin + static_cast<int64_t>(std::floor(place));
  std::nth_element(begin, lower, end);
  if (lower + 1 == end) return *lower;
  const double upper = *std::min_element(lower + 1, end);
  return *lower + (place - std::floor(place)) * (upper - *lower);
}

// Energy after large activations were clipped: OOD samples owe more of their logits to them.
class React : public Detector {
 public:
  React(const MeasureContext& context, Settings& settings)
      : Detector("react", {.weight = true}), temperature_(context.temperature) {
    check_temperature("react", temperature_);
    settings.read("quantile", quantile_);
    check(quantile_ > 0 && quantile_ <= 1, settings.full_name("quantile"),
          ": must be above 0 and at most 1, got ", quantile_);
  }

  Definition definition() const override {
    Definition definition = {
        {"score", "T logsumexp(M' / T)"},
        {"logits", "M' of features clipped at the quantile of all training activations"},
        {"quantile", quantile_},
        {"temperature", temperature_}};
    if (clip_) {
      definition["clip"] = *clip_;
      definition["tells_nothing"] = tells_nothing_;
    }
    return definition;
  }

 private:
  void do_fit(const Record& id_train) override {
    check(id_train.features.size(1) > 0, "react: needs at least one feature, got none");
    clip_ = quantile_of(id_train.features, quantile_);
    // With more zeros than the quantile has room for, each training sample is clipped to zeros.
    tells_nothing_ = *clip_ <= id_train.features.min().item<double>();
  }

  torch::Tensor do_score(const Record& record) const override {
    return energy(recomputed_logits(record, record.features.clamp_max(*clip_)), temperature_);
  }

  double temperature_;
  double quantile_ = 0.9;  // as published
  std::optional<double> clip_;
  bool tells_nothing_ = false;
};

const bool react_registered = detectors().add(
    "react",
    {
        .summary = "energy after large activations were clipped",
        .reference = "ReAct: out-of-distribution detection with rectified activations, "
                     "arXiv 2111.12797",
        .make = [](const MeasureContext& context,
                   Settings& settings) { return std::make_unique<React>(context, settings); },
    });

}  // namespace
}  // namespace kelvin
