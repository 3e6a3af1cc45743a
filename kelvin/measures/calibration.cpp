#include "kelvin/measures/calibration.h"

#include <torch/types.h>

#include "kelvin/core/check.h"
#include "kelvin/measures/measure.h"
#include "kelvin/numerics/calibration.h"

namespace kelvin {

int64_t read_calibration_bins(Settings& settings) {
  int64_t bins = CalibrationOptions().bins;
  settings.read("bins", bins);
  check(bins >= 1 && bins <= 65536, settings.full_name("bins"), ": must be from 1 to 65536, got ",
        bins);
  return bins;
}

Readings calibration_readings(const CalibrationQuality& quality, const Definition& common) {
  Readings readings;
  const auto add = [&](const char* name, double value, const Definition& own) {
    auto definition = common;
    definition.update(own);
    readings.push_back(
        {.name = name, .value = value, .split = "test", .definition = std::move(definition)});
  };
  const auto bins = quality.reliability.count.size(0);
  const auto* const width = "equal width, closed above";
  const auto* const error = "sum over bins of |accuracy - mean confidence| * count / samples";
  const auto* const confidence = "the largest probability of a sample";
  add("nll", quality.nll, {{"statistic", "mean over samples of -log p(label)"}});
  add("brier", quality.brier,
      {{"statistic", "sum over classes of (p - y)^2, mean over samples"}, {"upper_bound", 2}});
  add("ece", quality.ece,
      {{"statistic", error},
       {"confidence", confidence},
       {"bins", bins},
       {"binning", width},
       {"upper_bound", 1}});
  add("ece_equal_mass", quality.ece_equal_mass,
      {{"statistic", error},
       {"confidence", confidence},
       {"bins", bins},
       {"binning", "equal mass, samples of one confidence together"},
       {"upper_bound", 1}});
  add("ece_classwise", quality.ece_classwise,
      {{"statistic", "mean over classes c of the ECE of p(c) against (label == c)"},
       {"classes", quality.classes},
       {"bins", bins},
       {"binning", width},
       {"upper_bound", 2.0 / static_cast<double>(quality.classes)}});
  add("mce", quality.mce,
      {{"statistic", "largest |accuracy - mean confidence| of a bin"},
       {"confidence", confidence},
       {"bins", bins},
       {"binning", width},
       {"upper_bound", 1}});
  return readings;
}

NamedTensors reliability_curves(const Reliability& reliability, const std::string& prefix) {
  return {{prefix + "/confidence", reliability.confidence},
          {prefix + "/accuracy", reliability.accuracy},
          {prefix + "/count", reliability.count}};
}

namespace {

// Whether the network is right as often as its probabilities on the test split say.
class Calibration : public Measure, public UsesLogitsAlone {
 public:
  explicit Calibration(const CalibrationOptions& options) : options_(options), sums_(options) {}

  Needs needs() const override { return {}; }

  void update(const Record& record) override {
    if (record.is_ood() || record.split != Split::test || record.logits.size(0) == 0) return;
    sums_.update(record.logits, record.labels);
  }

  void merge(const Measure& other) override {
    sums_.merge(static_cast<const Calibration&>(other).sums_);
  }

  NamedTensors state() const override { return sums_.state(); }

  Readings compute() const override {
    check(sums_.samples() > 0, "calibration: no records of the test split were shown");
    return calibration_readings(sums_.quality(), {{"matrix", "softmax(M / T)"},
                                                  {"temperature", options_.temperature},
                                                  {"samples", sums_.samples()},
                                                  {"precision", "float32 forward, float64 sums"}});
  }

  NamedTensors curves() const override {
    if (sums_.samples() == 0) return {};
    return reliability_curves(sums_.quality().reliability, "reliability");
  }

  int64_t memory(const Record& example, int64_t samples) const override {
    return CalibrationSums::bytes(example.logits.size(1), samples, options_.bins);
  }

 private:
  CalibrationOptions options_;
  CalibrationSums sums_;
};

std::unique_ptr<Measure> make_calibration(const MeasureContext& context, Settings& settings) {
  return std::make_unique<Calibration>(CalibrationOptions{.temperature = context.temperature,
                                                          .bins = read_calibration_bins(settings)});
}

const bool calibration_registered = measures().add(
    "calibration", {
                       .summary = "how far probabilities are from the fraction of right answers: "
                                  "NLL, Brier score, calibration errors, reliability diagram",
                       .reference = "On calibration of modern neural networks, arXiv 1706.04599; "
                                    "class-wise: arXiv 1910.12656",
                       .make = make_calibration,
                       .needs_classifier = true,
                   });

}  // namespace
}  // namespace kelvin
