#include <torch/types.h>

#include "kelvin/measures/detectors/detector.h"
#include "kelvin/numerics/gaussian_fit.h"

namespace kelvin {
namespace {

// How far a feature is from the nearest class, in units of how features scatter within classes.
class Mahalanobis : public Detector {
 public:
  Mahalanobis() : Detector("mahalanobis", {.features = true}) {}

  Definition definition() const override {
    Definition definition = {{"score", "-min_c (h - mean_c)^T S^+ (h - mean_c)"},
                             {"covariance", "shared, around the means of true classes, over N"}};
    if (classes_ == 0) return definition;
    definition["classes"] = classes_;
    definition["rank"] = gaussians_.rank();
    return definition;
  }

 private:
  void do_fit(const Record& id_train) override {
    const auto classes = training_classes(*this, id_train);
    classes_ = classes.means.size(0);
    gaussians_ = SharedGaussians(classes.means, within_covariance(id_train.features, classes));
  }

  torch::Tensor do_score(const Record& record) const override {
    return -gaussians_.distances(record.features);
  }

  int64_t classes_ = 0;  // that have training samples
  SharedGaussians gaussians_;
};

const bool mahalanobis_registered = detectors().add(
    "mahalanobis",
    {
        .summary = "squared Mahalanobis distance to the nearest class of training features",
        .reference = "A simple unified framework for detecting OOD samples, arXiv 1807.03888",
        .make = [](const MeasureContext&, Settings&) { return std::make_unique<Mahalanobis>(); },
    });

}  // namespace
}  // namespace kelvin
