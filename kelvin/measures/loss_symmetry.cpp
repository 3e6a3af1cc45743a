#include <torch/types.h>

#include <cmath>
#include <optional>

#include "kelvin/core/check.h"
#include "kelvin/measures/measure.h"
#include "kelvin/ops/cross_entropy.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

// Number, mean and summed squared distance to the mean of numbers that come in parts.
struct Moments {
  double count = 0;
  double mean = 0;
  double squares = 0;

  void merge(const Moments& other) {
    if (other.count == 0) return;
    const double all = count + other.count;
    const double distance = other.mean - mean;
    squares += other.squares + distance * distance * count * other.count / all;
    mean += distance * other.count / all;
    count = all;
  }
};

Moments moments_of(const torch::Tensor& numbers) {
  const double mean = numbers.mean().item<double>();
  return {.count = static_cast<double>(numbers.numel()),
          .mean = mean,
          .squares = (numbers - mean).square().sum().item<double>()};
}

// A sum of tensors that starts with the first one.
void add(torch::Tensor& sum, const torch::Tensor& tensor) {
  if (tensor.defined()) sum = sum.defined() ? sum + tensor : tensor.clone();
}

// How alike the samples of the test split are to the loss: at a high temperature all have the same
// entropy, loss and probabilities, and their gradients tell little but the labels apart.
class LossSymmetry : public Measure {
 public:
  explicit LossSymmetry(const MeasureContext& context) : temperature_(context.temperature) {
    check_temperature("loss_symmetry", temperature_);
  }

  Needs needs() const override { return {}; }

  void update(const Record& record) override {
    if (record.is_ood() || record.split != Split::test || record.logits.size(0) == 0) return;
    const auto logits = record.logits.to(torch::kFloat64);
    const auto labels = record.labels.to(torch::kInt64);
    const auto values =
        tempered_cross_entropy(logits, labels, torch::tensor(temperature_, torch::kFloat64));
    losses_.merge(moments_of(values.sample_losses));
    entropies_ += values.entropies.sum().item<double>();
    const auto probabilities = softmax(logits, {.temperature = temperature_});
    add(unit_sum_, (probabilities / probabilities.norm(2, 1, /*keepdim=*/true)).sum(0));
    // Behind a normalisation of the logits, or unknown: see Record::weight.
    if (!record.features.defined() || !record.weight.defined()) {
      has_features_ = false;
      return;
    }
    const auto features = record.features.to(torch::kFloat64).flatten(1);
    const auto errors = probabilities.scatter_add(
        1, labels.unsqueeze(1), torch::full({labels.size(0), 1}, -1.0, torch::kFloat64));
    gradient_squares_ += (errors.square().sum(1) * features.square().sum(1)).sum().item<double>();
    add(gradient_sum_, errors.t().matmul(features));
  }

  void merge(const Measure& other) override {
    const auto& theirs = static_cast<const LossSymmetry&>(other);
    losses_.merge(theirs.losses_);
    entropies_ += theirs.entropies_;
    add(unit_sum_, theirs.unit_sum_);
    has_features_ = has_features_ && theirs.has_features_;
    gradient_squares_ += theirs.gradient_squares_;
    add(gradient_sum_, theirs.gradient_sum_);
  }

  NamedTensors state() const override {
    NamedTensors state = {
        {"sums", torch::tensor({losses_.count, losses_.mean, losses_.squares, entropies_,
                                gradient_squares_, has_features_ ? 1. : 0.},
                               torch::kFloat64)}};
    if (unit_sum_.defined()) state["unit_sum"] = unit_sum_;
    if (gradient_sum_.defined()) state["gradient_sum"] = gradient_sum_;
    return state;
  }

  Readings compute() const override {
    check(losses_.count > 0, "loss_symmetry: no records of the test split were shown");
    const double largest = std::log(static_cast<double>(unit_sum_.size(0)));
    Readings readings;
    if (largest > 0) {
      readings.push_back(reading(
          "entropy_ratio", entropies_ / losses_.count / largest,
          {{"matrix", "softmax(M / T)"}, {"statistic", "mean entropy of a sample over ln C"}}));
    }
    readings.push_back(reading("loss_spread", std::sqrt(losses_.squares / losses_.count),
                               {{"matrix", "softmax(M / T)"},
                                {"statistic", "standard deviation of the samples' cross-entropies"},
                                {"divided_by", "samples"}}));
    readings.push_back(reading(
        "loss_distance", losses_.mean - largest,
        {{"matrix", "softmax(M / T)"}, {"statistic", "mean cross-entropy of a sample - ln C"}}));
    if (losses_.count > 1) readings.push_back(cosine());
    if (const auto diversity = gradient_diversity()) readings.push_back(*diversity);
    return readings;
  }

 private:
  Reading reading(const std::string& name, double value, Definition definition) const {
    definition["temperature"] = temperature_;
    definition["samples"] = losses_.count;
    definition["precision"] = "float32 forward, float64 sums";
    return {.name = name, .value = value, .split = "test", .definition = definition};
  }

  Reading cosine() const {
    const double samples = losses_.count;
    const double pairs = unit_sum_.square().sum().item<double>() - samples;
    return reading("probability_cosine", pairs / (samples * (samples - 1)),
                   {{"matrix", "softmax(M / T) (class x sample)"},
                    {"statistic", "mean cosine of two different columns"},
                    {"centred", false}});
  }

  // None without features, or if the gradients cancel or vanish.  T is on both sides.
  std::optional<Reading> gradient_diversity() const {
    if (!has_features_ || !gradient_sum_.defined()) return std::nullopt;
    const double together = gradient_sum_.square().sum().item<double>();
    const double diversity = gradient_squares_ / together;
    if (!(together > 0) || !std::isfinite(diversity)) return std::nullopt;
    return reading("gradient_diversity", diversity,
                   {{"matrix", "G_i = (p_i - y_i) / T a_i^T, of the last weight matrix"},
                    {"statistic", "sum of |G_i|^2 over |sum of G_i|^2"},
                    {"norm", "Frobenius"}});
  }

  double temperature_;
  Moments losses_;
  double entropies_ = 0;
  torch::Tensor unit_sum_;  // [classes], of the samples' probabilities at length 1
  bool has_features_ = true;
  double gradient_squares_ = 0;  // of the gradients times T, as is their sum
  torch::Tensor gradient_sum_;   // [classes, dims]
};

const bool loss_symmetry_registered = measures().add(
    "loss_symmetry",
    {
        .summary = "how alike samples are to the loss: entropy, spread and distance of the "
                   "cross-entropies, cosine of the probabilities, diversity of the gradients",
        .reference = "Unpacking Softmax; gradient diversity: arXiv 1706.05699",
        .make = [](const MeasureContext& context,
                   Settings&) { return std::make_unique<LossSymmetry>(context); },
        .needs_classifier = true,
    });

}  // namespace
}  // namespace kelvin
