#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "kelvin/core/check.h"
#include "kelvin/math/spectrum.h"
#include "kelvin/measures/measure.h"

namespace kelvin {
namespace {

constexpr int kCurvePoints = 25;  // of the curve over gamma, from 1e-4 to 1e-1

// Which version of the logits matrix a spectrum belongs to.
struct Variant {
  bool shift_free;  // each sample's mean over classes removed: softmax ignores it
  bool bias;        // with the classifier's bias
};

// Spectrum and numerical rank of the logits matrix M (class x sample) of the
// test split.  All variants come out of class x class Gram matrices.
class SolutionRank : public Measure {
 public:
  explicit SolutionRank(Settings& settings) {
    settings.read("gamma", gamma_);
    check(gamma_ > 0 && gamma_ < 1, settings.full_name("gamma"), ": must be in (0, 1), got ",
          gamma_);
  }

  Needs needs() const override { return {}; }

  void update(const Record& record) override {
    if (record.is_ood() || record.split != Split::test) return;
    const auto logits = record.logits.to(torch::kFloat64);
    if (!with_bias_) with_bias_.emplace(logits.size(1));
    with_bias_->update(logits);
    if (record.weight.defined()) width_ = record.weight.size(1);
    if (!record.bias.defined()) return;
    if (!without_bias_) without_bias_.emplace(logits.size(1));
    without_bias_->update(logits - record.bias.to(torch::kFloat64));
  }

  void merge(const Measure& other) override {
    const auto& theirs = static_cast<const SolutionRank&>(other);
    merge_into(with_bias_, theirs.with_bias_);
    merge_into(without_bias_, theirs.without_bias_);
    width_ = std::max(width_, theirs.width_);
  }

  NamedTensors state() const override {
    NamedTensors tensors;
    if (with_bias_) {
      tensors["gram"] = with_bias_->gram();
      tensors["rows"] = torch::tensor(with_bias_->rows());
    }
    if (without_bias_) tensors["gram_without_bias"] = without_bias_->gram();
    return tensors;
  }

  Readings compute() const override {
    check(with_bias_.has_value(), "solution_rank: no records of the test split were shown");
    Readings readings;
    add_ranks(readings, {.shift_free = true, .bias = true});
    add_ranks(readings, {.shift_free = false, .bias = true});
    if (without_bias_) {
      add_ranks(readings, {.shift_free = true, .bias = false});
      add_ranks(readings, {.shift_free = false, .bias = false});
    }
    add_spectrum(readings);
    return readings;
  }

 private:
  static void merge_into(std::optional<GramAccumulator>& ours,
                         const std::optional<GramAccumulator>& theirs) {
    if (!theirs) return;
    if (ours) {
      ours->merge(*theirs);
    } else {
      ours = *theirs;
    }
  }

  torch::Tensor spectrum(const Variant& variant) const {
    const auto& source = variant.bias ? *with_bias_ : *without_bias_;
    if (!variant.shift_free) return source.singular_values();
    // Removing each sample's mean multiplies M by the centring projection, so G becomes P G P.
    const auto classes = source.gram().size(0);
    const auto centring = torch::eye(classes, torch::kFloat64) - 1.0 / static_cast<double>(classes);
    const auto centred = centring.matmul(source.gram()).matmul(centring);
    return GramAccumulator::from_state(centred, source.rows()).singular_values();
  }

  Definition definition(const Variant& variant, double gamma) const {
    const auto classes = with_bias_->gram().size(0);
    const auto by_classes = variant.shift_free ? classes - 1 : classes;
    // A bias adds one direction to the span of the classifier's inputs.
    const auto by_width = width_ > 0 ? width_ + (variant.bias && without_bias_ ? 1 : 0) : classes;
    return {{"matrix", "logits M (class x sample)"},
            {"shift_free", variant.shift_free},
            {"bias", variant.bias},
            {"centring", "none over samples"},
            {"gamma", gamma},
            {"threshold", "gamma * sigma_1"},
            {"samples", with_bias_->rows()},
            {"precision", "float32 forward, float64 Gram matrix"},
            {"upper_bound", std::min({by_classes, by_width, with_bias_->rows()})},
            {"bound_by_width", by_width < by_classes}};
  }

  void add_ranks(Readings& readings, const Variant& variant) const {
    const auto values = spectrum(variant);
    std::vector<double> gammas = {gamma_};
    for (const double gamma : {1e-2, 1e-3, 1e-4}) {
      if (gamma != gamma_) gammas.push_back(gamma);
    }
    for (const double gamma : gammas) {
      readings.push_back({.name = "solution_rank",
                          .value = static_cast<double>(numerical_rank(values, gamma)),
                          .split = "test",
                          .definition = definition(variant, gamma)});
    }
  }

  void add_spectrum(Readings& readings) const {
    const Variant variant{.shift_free = true, .bias = true};
    const auto values = spectrum(variant);
    for (int i = 0; i < kCurvePoints; ++i) {
      const double gamma = std::pow(10, -4 + 3.0 * i / (kCurvePoints - 1));
      auto of_curve = definition(variant, gamma);
      of_curve["curve"] = true;
      readings.push_back({.name = "solution_rank",
                          .value = static_cast<double>(numerical_rank(values, gamma)),
                          .split = "test",
                          .index = i,
                          .definition = of_curve});
    }
    auto of_values = definition(variant, gamma_);
    for (const char* key : {"gamma", "threshold", "upper_bound", "bound_by_width"}) {
      of_values.erase(key);
    }
    for (int64_t i = 0; i < values.size(0); ++i) {
      readings.push_back({.name = "singular_value",
                          .value = values[i].item<double>(),
                          .split = "test",
                          .index = i,
                          .definition = of_values});
    }
    readings.push_back({.name = "effective_rank",
                        .value = effective_rank(values),
                        .split = "test",
                        .definition = of_values});
  }

  double gamma_ = 1e-3;
  std::optional<GramAccumulator> with_bias_;
  std::optional<GramAccumulator> without_bias_;
  int64_t width_ = 0;
};

const bool registered = measures().add(
    "solution_rank",
    {
        .summary = "numerical rank and singular values of the logits matrix (SR)",
        .reference = "Unpacking Softmax, sections 2 and 3.2",
        .make = [](const MeasureContext&,
                   Settings& settings) { return std::make_unique<SolutionRank>(settings); },
    });

}  // namespace
}  // namespace kelvin
