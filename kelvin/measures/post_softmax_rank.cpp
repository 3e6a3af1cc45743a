#include <torch/types.h>

#include <optional>

#include "kelvin/core/check.h"
#include "kelvin/math/softmax.h"
#include "kelvin/math/spectrum.h"
#include "kelvin/measures/measure.h"

namespace kelvin {
namespace {

// Numerical rank of softmax_T(M), the matrix of probabilities of the test split.
class PostSoftmaxRank : public Measure {
 public:
  PostSoftmaxRank(const MeasureContext& context, Settings& settings)
      : temperature_(context.temperature) {
    settings.read("gamma", gamma_);
    check(gamma_ > 0 && gamma_ < 1, settings.full_name("gamma"), ": must be in (0, 1), got ",
          gamma_);
  }

  Needs needs() const override { return {}; }

  void update(const Record& record) override {
    if (record.is_ood() || record.split != Split::test) return;
    const auto logits = record.logits.to(torch::kFloat64);
    if (!probabilities_) probabilities_.emplace(logits.size(1));
    probabilities_->update(softmax(logits, {.temperature = temperature_}));
  }

  void merge(const Measure& other) override {
    const auto& theirs = static_cast<const PostSoftmaxRank&>(other);
    if (!theirs.probabilities_) return;
    if (probabilities_) {
      probabilities_->merge(*theirs.probabilities_);
    } else {
      probabilities_ = theirs.probabilities_;
    }
  }

  NamedTensors state() const override {
    if (!probabilities_) return {};
    return {{"gram", probabilities_->gram()}, {"rows", torch::tensor(probabilities_->rows())}};
  }

  Readings compute() const override {
    check(probabilities_.has_value(), "post_softmax_rank: no records of the test split were shown");
    const auto rank = numerical_rank(probabilities_->singular_values(), gamma_);
    return {{.name = "post_softmax_rank",
             .value = static_cast<double>(rank),
             .split = "test",
             .definition = {{"matrix", "softmax(M / T) (class x sample)"},
                            {"temperature", temperature_},
                            {"gamma", gamma_},
                            {"threshold", "gamma * sigma_1"},
                            {"samples", probabilities_->rows()},
                            {"precision", "float32 forward, float64 Gram matrix"}}}};
  }

 private:
  double temperature_;
  double gamma_ = 1e-3;
  std::optional<GramAccumulator> probabilities_;
};

const bool registered = measures().add(
    "post_softmax_rank", {
                             .summary = "numerical rank of the probabilities softmax(M / T)",
                             .reference = "Unpacking Softmax, section 3.3 and Figure 5",
                             .make =
                                 [](const MeasureContext& context, Settings& settings) {
                                   return std::make_unique<PostSoftmaxRank>(context, settings);
                                 },
                         });

}  // namespace
}  // namespace kelvin
