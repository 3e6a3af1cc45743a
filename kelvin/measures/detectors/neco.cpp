#include <torch/types.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/measures/detectors/detector.h"

namespace kelvin {
namespace {

// How much of a standardised feature lies in the leading principal directions
// of the training features: ||P h|| / ||h||.
class Neco : public Detector {
 public:
  explicit Neco(Settings& settings) {
    settings.read("dimensions", dimensions_);
    check(dimensions_ >= 0, settings.full_name("dimensions"), ": must not be below 0, got ",
          dimensions_);
  }

  void fit(const Record& id_train) override {
    check(id_train.features.defined(), "neco: needs features, the records have none");
    const auto features = id_train.features.to(torch::kFloat64);
    check(features.size(0) >= 2, "neco: needs at least 2 training samples, got ", features.size(0));
    mean_ = features.mean(0);
    deviation_ = features.std(0, /*unbiased=*/false);
    deviation_.masked_fill_(deviation_ == 0, 1);  // as scikit-learn's StandardScaler
    const auto standardised = (features - mean_) / deviation_;
    kept_ = std::min(dimensions_ > 0 ? dimensions_ : id_train.classes, features.size(1));
    // Eigenvectors come in ascending order: the leading ones are the last columns.
    const auto vectors = std::get<1>(torch::linalg_eigh(standardised.t().matmul(standardised)));
    directions_ = vectors.narrow(1, features.size(1) - kept_, kept_);
  }

  torch::Tensor score(const Record& record) const override {
    check(directions_.defined(), "neco: must be fitted before it scores");
    check(record.features.defined(), "neco: needs features, the records have none");
    const auto standardised = (record.features.to(torch::kFloat64) - mean_) / deviation_;
    const auto norm = standardised.norm(2, 1);
    // All directions kept: the ratio is 1 for everything, and rounding must not rank samples.
    const auto ratio = kept_ == directions_.size(0)
                           ? torch::ones_like(norm)
                           : standardised.matmul(directions_).norm(2, 1) / norm;
    // The mean itself has no direction: it gets the score of the most foreign sample.
    return torch::where(norm > 0, ratio, torch::zeros_like(norm));
  }

  Definition definition() const override {
    return {{"score", "||P h|| / ||h||"},
            {"features", "classifier input, standardised on training features"},
            {"dimensions", kept_},
            {"tells_nothing", directions_.defined() && kept_ == directions_.size(0)},
            {"max_logit", false}};
  }

 private:
  int64_t dimensions_ = 0;  // 0: as many as classes
  int64_t kept_ = 0;
  torch::Tensor mean_;
  torch::Tensor deviation_;
  torch::Tensor directions_;  // [dims, kept]
};

const bool registered = detectors().add(
    "neco", {
                .summary = "share of a feature in the principal space of training features",
                .reference = "NECO, arXiv 2310.06823",
                .make = [](const MeasureContext&,
                           Settings& settings) { return std::make_unique<Neco>(settings); },
            });

}  // namespace
}  // namespace kelvin
