#include <torch/types.h>

#include "kelvin/measures/detectors/detector.h"
#include "kelvin/numerics/gaussian_fit.h"

namespace kelvin {
namespace {

// The Mahalanobis distance to the nearest class, less that to all training features taken as one:
// directions in which classes do not differ cancel.
class RelativeMahalanobis : public Detector {
 public:
  RelativeMahalanobis() : Detector("relative_mahalanobis", {.features = true}) {}

  Definition definition() const override {
    Definition definition = {
        {"score", "(h - mean)^T S_all^+ (h - mean) - min_c (h - mean_c)^T S^+ (h - mean_c)"},
        {"covariance",
         "S shared, around the means of true classes; S_all around the mean; over N"}};
    if (classes_ == 0) return definition;
    definition["classes"] = classes_;
    definition["rank"] = by_class_.rank();
    definition["rank_of_all"] = all_.rank();
    return definition;
  }

 private:
  void do_fit(const Record& id_train) override {
    const auto classes = training_classes(*this, id_train);
    const auto within = within_covariance(id_train.features, classes);
    classes_ = classes.means.size(0);
    by_class_ = SharedGaussians(classes.means, within);
    all_ = SharedGaussians(classes.mean.unsqueeze(0), total_covariance(within, classes));
  }

  torch::Tensor do_score(const Record& record) const override {
    return all_.distances(record.features) - by_class_.distances(record.features);
  }

  int64_t classes_ = 0;  // that have training samples
  SharedGaussians by_class_;
  SharedGaussians all_;
};

const bool relative_mahalanobis_registered = detectors().add(
    "relative_mahalanobis",
    {
        .summary = "Mahalanobis distance to the nearest class, less that to all training features",
        .reference = "A simple fix to Mahalanobis distance for near-OOD, arXiv 2106.09022",
        .make = [](const MeasureContext&,
                   Settings&) { return std::make_unique<RelativeMahalanobis>(); },
    });

}  // namespace
}  // namespace kelvin
