#include <torch/types.h>

#include <limits>

#include "kelvin/core/check.h"
#include "kelvin/measures/detectors/detector.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

// The mean distance of a feature to the decision boundaries of its class, relative to its distance
// from the mean of training features.
class DecisionBoundary : public Detector {
 public:
  DecisionBoundary() : Detector("fdbd", {.weight = true}) {}

  Definition definition() const override {
    return {{"score", "mean_c (M_max - M_c) / ||w_max - w_c|| / ||h - mean||"},
            {"classes", "all but the predicted one and those of equal weights"}};
  }

 private:
  void do_fit(const Record& id_train) override {
    mean_ = id_train.features.mean(0);
    rounding_ = static_cast<double>(id_train.features.size(0)) *
                std::numeric_limits<double>::epsilon() * mean_.norm().item<double>();
    const auto& weight = id_train.weight;
    // Of all pairs of classes; without products of matrices, so that equal weights have exactly 0.
    const auto distances = torch::cdist(weight, weight, 2, /*compute_mode=*/2);
    const auto has_boundary = (distances > 0).to(torch::kFloat64);
    check(has_boundary.any().item<bool>(), name(), ": needs two classes whose weights differ, all ",
          weight.size(0), " are equal");
    // Between classes of equal weights there is no boundary.
    per_logit_ = has_boundary / torch::where(distances > 0, distances, torch::ones_like(distances));
    per_logit_ = per_logit_ / has_boundary.sum(1, /*keepdim=*/true);
  }

  torch::Tensor do_score(const Record& record) const override {
    const auto [largest, winner] = record.logits.max(1, /*keepdim=*/true);
    const auto factors = per_logit_.index_select(0, winner.squeeze(1));
    const auto margin = ((largest - record.logits) * factors).sum(1);
    const auto length = row_numbers(record.features.size(0), [&](int64_t begin, int64_t end) {
      return (record.features.slice(0, begin, end) - mean_).norm(2, 1);
    });
    // On a boundary the score is the lowest, wherever that is.
    const auto is_lowest = margin == 0;
    const auto distance = torch::where(length <= rounding_, torch::zeros_like(length), length);
    return torch::where(is_lowest, torch::zeros_like(length), margin / distance);
  }

  torch::Tensor mean_;
  double rounding_ = 0;      // what counts as no distance from the mean
  torch::Tensor per_logit_;  // [classes, classes] what a difference of logits counts
};

const bool fdbd_registered = detectors().add(
    "fdbd",
    {
        .summary = "mean distance to the decision boundaries, over that to the mean feature",
        .reference = "Fast decision boundary based OOD detector, arXiv 2312.11536",
        .make = [](const MeasureContext&,
                   Settings&) { return std::make_unique<DecisionBoundary>(); },
    });

}  // namespace
}  // namespace kelvin
