#include <torch/types.h>

#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/measures/measure.h"

namespace kelvin {
namespace {

// Frobenius norm of the logits matrix M of the test split.
class LogitsNorm : public Measure, public UsesLogitsAlone {
 public:
  explicit LogitsNorm(const MeasureContext& context) : temperature_(context.temperature) {}

  Needs needs() const override { return {}; }

  void update(const Record& record) override {
    if (record.is_ood() || record.split != Split::test) return;
    squares_ += record.logits.to(torch::kFloat64).square().sum().item<double>();
    samples_ += static_cast<double>(record.logits.size(0));
  }

  void merge(const Measure& other) override {
    const auto& theirs = static_cast<const LogitsNorm&>(other);
    squares_ += theirs.squares_;
    samples_ += theirs.samples_;
  }

  NamedTensors state() const override {
    return {{"sums", torch::tensor({squares_, samples_}, torch::kFloat64)}};
  }

  Readings compute() const override {
    check(samples_ > 0, "logits_norm: no records of the test split were shown");
    const double norm = std::sqrt(squares_);
    const Definition raw = {{"matrix", "logits M"}, {"norm", "Frobenius"},
                            {"shift_free", false},  {"bias", true},
                            {"samples", samples_},  {"precision", "float32 forward, float64 sums"}};
    Definition over_t = raw;
    over_t["matrix"] = "M / T";
    over_t["temperature"] = temperature_;
    Definition per_sample = raw;
    per_sample["divided_by"] = "sqrt(samples)";
    return {{.name = "logits_norm", .value = norm, .split = "test", .definition = raw},
            {.name = "logits_norm_over_t",
             .value = norm / temperature_,
             .split = "test",
             .definition = over_t},
            {.name = "logits_norm_per_sample",
             .value = norm / std::sqrt(samples_),
             .split = "test",
             .definition = per_sample}};
  }

 private:
  double temperature_;
  double squares_ = 0;
  double samples_ = 0;
};

const bool logits_norm_registered = measures().add(
    "logits_norm", {
                       .summary = "Frobenius norm of the logits, raw, over T and per sample",
                       .reference = "Unpacking Softmax, section 3.1",
                       .make = [](const MeasureContext& context,
                                  Settings&) { return std::make_unique<LogitsNorm>(context); },
                   });

}  // namespace
}  // namespace kelvin
