// A measure of your own: put a file like this into kelvin/measures/ and its test
// into tests/measures/.  Nothing else is edited.

#include <torch/types.h>

#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/measures/measure.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

// Mean entropy of the probabilities over ln(classes): 1 at the symmetric start
// of training at a high temperature, 0 when the network is sure of everything.
class MeanEntropy : public Measure {
 public:
  explicit MeanEntropy(const MeasureContext& context) : temperature_(context.temperature) {}

  Needs needs() const override { return {}; }

  void update(const Record& record) override {
    if (record.is_ood() || record.split != Split::test) return;
    const auto logs = log_softmax(record.logits.to(torch::kFloat64), {.temperature = temperature_});
    sum_ -= (logs.exp() * logs).sum().item<double>() / std::log(record.logits.size(1));
    samples_ += static_cast<double>(record.logits.size(0));
  }

  void merge(const Measure& other) override {
    const auto& theirs = static_cast<const MeanEntropy&>(other);
    sum_ += theirs.sum_;
    samples_ += theirs.samples_;
  }

  NamedTensors state() const override {
    return {{"sums", torch::tensor({sum_, samples_}, torch::kFloat64)}};
  }

  Readings compute() const override {
    check(samples_ > 0, "mean_entropy: no records of the test split were shown");
    return {{.name = "mean_entropy",
             .value = sum_ / samples_,
             .split = "test",
             .definition = {{"of", "softmax(M / T)"},
                            {"divided_by", "ln(classes)"},
                            {"temperature", temperature_},
                            {"samples", samples_}}}};
  }

 private:
  double temperature_;
  double sum_ = 0;
  double samples_ = 0;
};

const bool mean_entropy_registered = measures().add(
    "mean_entropy", {
                        .summary = "mean entropy of the probabilities over ln(classes)",
                        .reference = "Unpacking Softmax, section 3.1",
                        .make = [](const MeasureContext& context,
                                   Settings&) { return std::make_unique<MeanEntropy>(context); },
                    });

}  // namespace
}  // namespace kelvin
