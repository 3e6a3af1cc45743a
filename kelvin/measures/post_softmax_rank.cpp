#include <torch/types.h>

#include <algorithm>
#include <optional>

#include "kelvin/core/check.h"
#include "kelvin/measures/measure.h"
#include "kelvin/measures/spectrum_readings.h"
#include "kelvin/numerics/spectrum.h"
#include "kelvin/ops/numerical_rank.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

// Ranks and singular values of softmax_T(M), the matrix of probabilities of the test split.  Their
// names all begin with post_softmax_: nobody may take them for those of the logits.
class PostSoftmaxRank : public Measure, public UsesLogitsAlone {
 public:
  PostSoftmaxRank(const MeasureContext& context, Settings& settings)
      : temperature_(context.temperature) {
    settings.read("gamma", gamma_);
    check_gamma(settings, gamma_);
  }

  Needs needs() const override { return {}; }

  void update(const Record& record) override {
    if (record.is_ood() || record.split != Split::test) return;
    const auto logits = finite_logits(record, "post_softmax_rank");
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
    const auto values = probabilities_->singular_values();
    Readings readings;
    add_ranks(readings, values);
    const Reading plain = {.name = "", .split = "test", .definition = definition()};
    for (auto& reading : rank_readings(values, plain, "post_softmax_")) {
      readings.push_back(std::move(reading));
    }
    add_spectrum(readings, values);
    return readings;
  }

  int64_t memory(const Record& example, int64_t /*samples*/) const override {
    const auto classes = example.logits.size(1);
    return static_cast<int64_t>(sizeof(double)) * classes * classes;
  }

 private:
  Definition definition() const {
    return {{"matrix", "softmax(M / T) (class x sample)"},
            {"temperature", temperature_},
            {"centring", "none"},
            {"samples", probabilities_->rows()},
            {"precision", "float32 forward, float64 Gram matrix"},
            {"upper_bound", std::min(probabilities_->gram().size(0), probabilities_->rows())}};
  }

  // The one at the chosen gamma first.
  void add_ranks(Readings& readings, const torch::Tensor& values) const {
    for (const double gamma : reported_gammas(gamma_)) {
      auto meaning = definition();
      meaning["gamma"] = gamma;
      meaning["threshold"] = "gamma * sigma_1";
      readings.push_back({.name = "post_softmax_rank",
                          .value = static_cast<double>(numerical_rank(values, gamma)),
                          .split = "test",
                          .definition = meaning});
    }
  }

  void add_spectrum(Readings& readings, const torch::Tensor& values) const {
    auto meaning = definition();
    meaning.erase("upper_bound");
    for (int64_t i = 0; i < values.size(0); ++i) {
      readings.push_back({.name = "post_softmax_singular_value",
                          .value = values[i].item<double>(),
                          .split = "test",
                          .index = i,
                          .definition = meaning});
    }
  }

  double temperature_;
  double gamma_ = 1e-3;
  std::optional<GramAccumulator> probabilities_;
};

const bool post_softmax_rank_registered =
    measures().add("post_softmax_rank",
                   {
                       .summary = "ranks and singular values of the probabilities softmax(M / T)",
                       .reference = "Unpacking Softmax, section 3.3 and Figure 5",
                       .make =
                           [](const MeasureContext& context, Settings& settings) {
                             return std::make_unique<PostSoftmaxRank>(context, settings);
                           },
                       .needs_classifier = true,
                   });

}  // namespace
}  // namespace kelvin
