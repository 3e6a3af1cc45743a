#include <torch/types.h>

#include "kelvin/measures/detectors/detector.h"
#include "kelvin/measures/detectors/null_space.h"

namespace kelvin {
namespace {

// How much of a feature lies where training features have little.
class Residual : public Detector {
 public:
  explicit Residual(Settings& settings)
      : Detector("residual", {.weight = true}), dimensions_(read_principal_dimensions(settings)) {}

  Definition definition() const override {
    Definition definition = {{"score", "-||N^T (h - u)||"},
                             {"origin", "u = -W^+ b"},
                             {"null_space", "N: all but the principal directions of h - u"}};
    if (!space_.directions.defined()) return definition;
    definition["dimensions"] = space_.principal_dimensions();
    definition["tells_nothing"] = tells_nothing_;
    return definition;
  }

 private:
  void do_fit(const Record& id_train) override {
    space_ = null_space_of(*this, id_train, dimensions_);
    constexpr int64_t kRows = 1024;  // at once, because the first ones mostly tell
    tells_nothing_ = true;
    for (int64_t row = 0; row < id_train.features.size(0) && tells_nothing_; row += kRows) {
      const auto norms = space_.norms(id_train.features.slice(0, row, row + kRows));
      tells_nothing_ = (norms == 0).all().item<bool>();
    }
  }

  torch::Tensor do_score(const Record& record) const override {
    return -space_.norms(record.features);
  }

  int64_t dimensions_;  // principal ones; 0: as published
  NullSpace space_;
  bool tells_nothing_ = false;  // training features lie in their principal dimensions
};

const bool residual_registered = detectors().add(
    "residual", {
                    .summary = "length of a feature outside of the principal space of training",
                    .reference = "ViM, arXiv 2203.10807",
                    .make = [](const MeasureContext&,
                               Settings& settings) { return std::make_unique<Residual>(settings); },
                });

}  // namespace
}  // namespace kelvin
