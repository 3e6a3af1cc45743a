#include <torch/types.h>

#include <limits>

#include "kelvin/measures/detectors/detector.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

// Rows scaled to length 1; those not longer than `rounding` become 0, so that their cosine is 0.
torch::Tensor directions(const torch::Tensor& rows, double rounding) {
  const auto lengths = rows.norm(2, 1, /*keepdim=*/true);
  return torch::where(lengths <= rounding, torch::zeros_like(rows), rows / lengths);
}

// How well the direction of a feature agrees with that of a class.
class Cosine : public Detector {
 public:
  explicit Cosine(Settings& settings) : Detector("cosine", {.features = true}) {
    settings.read("centred", is_centred_);
  }

  Definition definition() const override {
    Definition definition = {
        {"score", is_centred_ ? "max_c cos(h - mean, mean_c - mean)" : "max_c cos(h, mean_c)"},
        {"centred", is_centred_}};
    if (means_.defined()) definition["classes"] = means_.size(0);
    return definition;
  }

 private:
  void do_fit(const Record& id_train) override {
    const auto classes = training_classes(*this, id_train);
    origin_ = is_centred_ ? classes.mean : torch::zeros_like(classes.mean);
    // Where means agree with the origin, what is left of them has no direction.
    rounding_ = static_cast<double>(id_train.features.size(0)) *
                std::numeric_limits<double>::epsilon() * origin_.norm().item<double>();
    means_ = directions(classes.means - origin_, rounding_);
  }

  torch::Tensor do_score(const Record& record) const override {
    return row_numbers(record.features.size(0), [&](int64_t begin, int64_t end) {
      const auto rows = record.features.slice(0, begin, end) - origin_;
      return directions(rows, rounding_).matmul(means_.t()).amax(1);
    });
  }

  bool is_centred_ = false;
  double rounding_ = 0;
  torch::Tensor origin_;
  torch::Tensor means_;  // [classes with training samples, dims], of length 1
};

const bool cosine_registered = detectors().add(
    "cosine",
    {
        .summary = "largest cosine to the mean of a class of training features",
        .reference = "A cosine similarity-based method for OOD detection, arXiv 2306.14920",
        .make = [](const MeasureContext&,
                   Settings& settings) { return std::make_unique<Cosine>(settings); },
    });

}  // namespace
}  // namespace kelvin
