#include <torch/types.h>

#include "kelvin/core/check.h"
#include "kelvin/measures/detectors/detector.h"
#include "kelvin/measures/detectors/null_space.h"
#include "kelvin/measures/detectors/probability_scores.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

// The energy against a virtual logit, which is the length outside of the principal space, scaled
// to the size of the largest logit on training samples.
class VirtualLogit : public Detector {
 public:
  VirtualLogit(const MeasureContext& context, Settings& settings)
      : Detector("vim", {.weight = true}),
        temperature_(context.temperature),
        dimensions_(read_principal_dimensions(settings)) {
    check_temperature("vim", temperature_);
  }

  Definition definition() const override {
    Definition definition = {{"score", "T logsumexp(M / T) - alpha ||N^T (h - u)||"},
                             {"origin", "u = -W^+ b"},
                             {"null_space", "N: all but the principal directions of h - u"},
                             {"temperature", temperature_}};
    if (!space_.directions.defined()) return definition;
    definition["dimensions"] = space_.principal_dimensions();
    definition["alpha"] = alpha_;
    return definition;
  }

 private:
  void do_fit(const Record& id_train) override {
    auto space = null_space_of(*this, id_train, dimensions_);
    const auto norms = space.norms(id_train.features).sum().item<double>();
    check(norms > 0, name(),
          ": training features must reach beyond their principal dimensions, all of them lie in ",
          space.principal_dimensions(), "; fewer dimensions may do");
    alpha_ = id_train.logits.amax(1).sum().item<double>() / norms;
    space_ = std::move(space);
  }

  torch::Tensor do_score(const Record& record) const override {
    return energy(record.logits, temperature_) - alpha_ * space_.norms(record.features);
  }

  double temperature_;
  int64_t dimensions_;  // principal ones; 0: as published
  double alpha_ = 0;
  NullSpace space_;
};

const bool vim_registered = detectors().add(
    "vim", {
               .summary = "energy less a virtual logit: the scaled length outside of the principal "
                          "space of training features",
               .reference = "ViM, arXiv 2203.10807",
               .make =
                   [](const MeasureContext& context, Settings& settings) {
                     return std::make_unique<VirtualLogit>(context, settings);
                   },
           });

}  // namespace
}  // namespace kelvin
