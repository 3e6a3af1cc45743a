#include <torch/types.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/measures/detectors/detector.h"
#include "kelvin/numerics/nearest_neighbours.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

// To length 1; a zero vector stays what it is.
torch::Tensor normalised(const torch::Tensor& features) {
  auto result = torch::empty_like(features);
  for_row_blocks(features.size(0), [&](int64_t begin, int64_t end) {
    const auto rows = features.slice(0, begin, end);
    // By the largest entry first: squares of finite numbers may be infinite.
    const auto largest = rows.abs().amax(1, /*keepdim=*/true);
    const auto scaled = rows / torch::where(largest == 0, torch::ones_like(largest), largest);
    const auto lengths = scaled.norm(2, 1, /*keepdim=*/true);
    result.slice(0, begin, end)
        .copy_(scaled / torch::where(lengths == 0, torch::ones_like(lengths), lengths));
  });
  return result;
}

// How far the direction of a feature is from those of training features.
class KthNearest : public Detector {
 public:
  explicit KthNearest(Settings& settings) : Detector("knn", {.features = true}) {
    settings.read("neighbours", neighbours_);
    check(neighbours_ >= 1, settings.full_name("neighbours"), ": must be at least 1, got ",
          neighbours_);
  }

  Definition definition() const override {
    return {{"score", "-|h / |h| - the k-th nearest of training samples|"},
            {"neighbours", training_.k() > 0 ? training_.k() : neighbours_}};
  }

 private:
  void do_fit(const Record& id_train) override {
    const auto& features = id_train.features;
    training_ = NearestNeighbours(normalised(features), std::min(neighbours_, features.size(0)));
  }

  torch::Tensor do_score(const Record& record) const override {
    const auto directions = normalised(record.features);
    check(torch::isfinite(directions.sum()).item<bool>(), name(),
          ": features must be finite, have a NaN or an infinity");
    return -training_.distances(directions);
  }

  int64_t neighbours_ = 50;  // at most all there are
  NearestNeighbours training_;
};

const bool knn_registered = detectors().add(
    "knn", {
               .summary = "distance of the normalised feature to its k-th nearest training feature",
               .reference = "OOD detection with deep nearest neighbors, arXiv 2204.06507",
               .make = [](const MeasureContext&,
                          Settings& settings) { return std::make_unique<KthNearest>(settings); },
           });

}  // namespace
}  // namespace kelvin
