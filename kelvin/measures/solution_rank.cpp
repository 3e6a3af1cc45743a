#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "kelvin/core/check.h"
#include "kelvin/core/reading.h"
#include "kelvin/measures/measure.h"
#include "kelvin/measures/spectrum_readings.h"
#include "kelvin/numerics/spectrum.h"
#include "kelvin/ops/numerical_rank.h"

namespace kelvin {
namespace {

constexpr int kGammaCurvePoints = 25;  // of the curve over gamma, from 1e-4 to 1e-1

// Which version of the logits matrix a spectrum belongs to.
struct Variant {
  bool shift_free;  // each sample's mean over classes removed: softmax ignores it
  bool bias;        // with the classifier's bias
};

// The default first; those without bias only where the classifier has one.
constexpr std::array<Variant, 4> kVariants = {{{.shift_free = true, .bias = true},
                                               {.shift_free = false, .bias = true},
                                               {.shift_free = true, .bias = false},
                                               {.shift_free = false, .bias = false}}};

std::string name_of(const Variant& variant) {
  return std::string(variant.shift_free ? "shift_free" : "raw") +
         (variant.bias ? "" : "_without_bias");
}

// Spectrum and numerical rank of the logits matrix M (class x sample) of the
// test split, from one class x class Gram matrix per variant.
class SolutionRank : public Measure, public UsesNoFeatures {
 public:
  explicit SolutionRank(Settings& settings) {
    settings.read("gamma", gamma_);
    check_gamma(settings, gamma_);
  }

  Needs needs() const override { return {}; }

  void update(const Record& record) override {
    if (record.is_ood() || record.split != Split::test) return;
    const auto logits = finite_logits(record, "solution_rank");
    if (record.weight.defined()) width_ = record.weight.size(1);
    for (size_t i = 0; i < kVariants.size(); ++i) {
      const auto& variant = kVariants.at(i);
      if (!variant.bias && !record.bias.defined()) continue;
      auto matrix = variant.bias ? logits : logits - record.bias.to(torch::kFloat64);
      // Sample by sample, before anything is squared: a constant row leaves exact zeros.
      if (variant.shift_free) matrix = matrix - matrix.mean(1, /*keepdim=*/true);
      auto& gram = grams_.at(i);
      if (!gram) gram.emplace(logits.size(1));
      gram->update(matrix);
    }
  }

  void merge(const Measure& other) override {
    const auto& theirs = static_cast<const SolutionRank&>(other);
    width_ = std::max(width_, theirs.width_);
    for (size_t i = 0; i < grams_.size(); ++i) {
      auto& ours = grams_.at(i);
      if (ours && theirs.grams_.at(i)) {
        ours->merge(*theirs.grams_.at(i));
      } else if (!ours) {
        ours = theirs.grams_.at(i);
      }
    }
  }

  NamedTensors state() const override {
    NamedTensors tensors;
    for (size_t i = 0; i < grams_.size(); ++i) {
      if (!grams_.at(i)) continue;
      tensors["gram/" + name_of(kVariants.at(i))] = grams_.at(i)->gram();
      tensors["rows"] = torch::tensor(grams_.at(i)->rows());
    }
    return tensors;
  }

  Readings compute() const override {
    check(grams_[0].has_value(), "solution_rank: no records of the test split were shown");
    Readings readings;
    for (size_t i = 0; i < grams_.size(); ++i) {
      if (grams_.at(i)) add_ranks(readings, kVariants.at(i), grams_.at(i)->singular_values());
    }
    add_spectrum(readings, kVariants[0], grams_[0]->singular_values());
    for (size_t i = 0; i < grams_.size(); ++i) {
      if (grams_.at(i)) add_others(readings, kVariants.at(i), grams_.at(i)->singular_values());
    }
    return readings;
  }

  int64_t memory(const Record& example, int64_t /*samples*/) const override {
    const auto classes = example.logits.size(1);
    return static_cast<int64_t>(kVariants.size() * sizeof(double)) * classes * classes;
  }

 private:
  Definition definition(const Variant& variant, double gamma) const {
    const auto classes = grams_[0]->gram().size(0);
    const auto samples = grams_[0]->rows();
    const bool has_bias = grams_.back().has_value();
    const auto by_classes = variant.shift_free ? classes - 1 : classes;
    // A bias adds one direction to the span of the classifier's inputs.
    const auto by_width = width_ > 0 ? width_ + (variant.bias && has_bias ? 1 : 0) : classes;
    Definition result = {{"matrix", "logits M (class x sample)"},
                         {"shift_free", variant.shift_free},
                         {"bias", variant.bias},
                         {"centring", "none over samples"},
                         {"gamma", gamma},
                         {"threshold", "gamma * sigma_1"},
                         {"samples", samples},
                         {"precision", "float32 forward, float64 Gram matrix"},
                         {"upper_bound", std::min({by_classes, by_width, samples})},
                         {"bound_by_width", by_width < by_classes}};
    if (const auto without = std::min(by_classes, by_width); samples < without) {
      result[kCaveat] = c10::str(samples, " samples cannot show a rank above ", samples, ", and ",
                                 without, " is possible: take more samples");
    }
    return result;
  }

  void add_ranks(Readings& readings, const Variant& variant, const torch::Tensor& values) const {
    for (const double gamma : reported_gammas(gamma_)) {
      readings.push_back({.name = "solution_rank",
                          .value = static_cast<double>(numerical_rank(values, gamma)),
                          .split = "test",
                          .definition = definition(variant, gamma)});
    }
  }

  void add_spectrum(Readings& readings, const Variant& variant, const torch::Tensor& values) const {
    for (int i = 0; i < kGammaCurvePoints; ++i) {
      const double gamma = std::pow(10, -4 + 3.0 * i / (kGammaCurvePoints - 1));
      auto of_curve = definition(variant, gamma);
      of_curve["curve"] = true;
      readings.push_back({.name = "solution_rank",
                          .value = static_cast<double>(numerical_rank(values, gamma)),
                          .split = "test",
                          .index = i,
                          .definition = of_curve});
    }
    auto of_values = definition(variant, gamma_);
    for (const char* key : {"gamma", "threshold", "upper_bound", "bound_by_width", kCaveat}) {
      of_values.erase(key);
    }
    for (int64_t i = 0; i < values.size(0); ++i) {
      readings.push_back({.name = "singular_value",
                          .value = values[i].item<double>(),
                          .split = "test",
                          .index = i,
                          .definition = of_values});
    }
  }

  // The ranks that have no threshold; at most as large as the numerical one can be.
  void add_others(Readings& readings, const Variant& variant, const torch::Tensor& values) const {
    auto meaning = definition(variant, gamma_);
    for (const char* key : {"gamma", "threshold"}) meaning.erase(key);
    for (auto& reading :
         rank_readings(values, {.name = "", .split = "test", .definition = meaning})) {
      readings.push_back(std::move(reading));
    }
  }

  double gamma_ = 1e-3;
  std::array<std::optional<GramAccumulator>, kVariants.size()> grams_;  // as kVariants
  int64_t width_ = 0;
};

const bool solution_rank_registered = measures().add(
    "solution_rank",
    {
        .summary = "numerical rank (SR), singular values and other ranks of the logits matrix",
        .reference = "Unpacking Softmax, sections 2 and 3.2",
        .make = [](const MeasureContext&,
                   Settings& settings) { return std::make_unique<SolutionRank>(settings); },
    });

}  // namespace
}  // namespace kelvin
