#include <torch/types.h>

#include <array>

#include "kelvin/core/check.h"
#include "kelvin/measures/measure.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

// Fraction of right answers and mean negative log-likelihood at the training temperature.
class Accuracy : public Measure, public UsesLogitsAlone {
 public:
  explicit Accuracy(const MeasureContext& context) : temperature_(context.temperature) {}

  Needs needs() const override { return {.train_split = true}; }

  void update(const Record& record) override {
    if (record.is_ood()) return;
    auto& sums = of(record.split);
    const auto logits = record.logits.to(torch::kFloat64);
    sums[0] += static_cast<double>(record.labels.size(0));
    sums[1] += (logits.argmax(1) == record.labels).sum().item<double>();
    sums[2] -= log_softmax(logits, {.temperature = temperature_})
                   .gather(1, record.labels.unsqueeze(1))
                   .sum()
                   .item<double>();
  }

  void merge(const Measure& other) override {
    const auto& theirs = static_cast<const Accuracy&>(other);
    for (size_t i = 0; i < train_.size(); ++i) {
      train_.at(i) += theirs.train_.at(i);
      test_.at(i) += theirs.test_.at(i);
    }
  }

  NamedTensors state() const override {
    return {{"train", torch::tensor({train_[0], train_[1], train_[2]}, torch::kFloat64)},
            {"test", torch::tensor({test_[0], test_[1], test_[2]}, torch::kFloat64)}};
  }

  Readings compute() const override {
    Readings readings;
    for (const auto split : {Split::train, Split::test}) {
      const auto& [samples, right, loss] = split == Split::train ? train_ : test_;
      if (samples == 0) continue;
      const Definition definition = {{"samples", samples}, {"precision", "float32 forward"}};
      Definition nll = definition;
      nll["temperature"] = temperature_;
      readings.push_back({.name = "accuracy",
                          .value = right / samples,
                          .split = name_of(split),
                          .definition = definition});
      readings.push_back(
          {.name = "nll", .value = loss / samples, .split = name_of(split), .definition = nll});
    }
    check(!readings.empty(), "accuracy: no records were shown");
    return readings;
  }

 private:
  using Sums = std::array<double, 3>;  // samples, right answers, negative log-likelihoods
  Sums& of(Split split) { return split == Split::train ? train_ : test_; }

  double temperature_;
  Sums train_ = {};
  Sums test_ = {};
};

const bool accuracy_registered = measures().add(
    "accuracy", {
                    .summary = "fraction of right answers, negative log-likelihood",
                    .reference = "",
                    .make = [](const MeasureContext& context,
                               Settings&) { return std::make_unique<Accuracy>(context); },
                    .needs_classifier = true,
                });

}  // namespace
}  // namespace kelvin
