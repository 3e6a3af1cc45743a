#include <torch/types.h>

#include <cmath>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/measures/detectors/detector.h"
#include "kelvin/measures/detectors/probability_scores.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

// How far the probabilities are from what is usual for the nearest class.
class KlMatching : public Detector {
 public:
  explicit KlMatching(const MeasureContext& context)
      : Detector("kl_matching"), temperature_(context.temperature) {
    check_temperature("kl_matching", temperature_);
  }

  Definition definition() const override {
    Definition definition = {
        {"score", "minus the smallest KL(softmax(M / T) || d_k) over classes k"},
        {"d_k", "mean softmax(M / T) of training samples predicted as k; no k without any"},
        {"temperature", temperature_}};
    if (log_means_.defined()) definition["predicted_classes"] = log_means_.size(0);
    return definition;
  }

 private:
  void do_fit(const Record& id_train) override {
    const auto classes = id_train.logits.size(1);
    check(classes > 0, "kl_matching: needs at least one class, got none");
    const auto predicted = id_train.logits.argmax(1);
    std::vector<torch::Tensor> log_means;
    log_means.reserve(static_cast<size_t>(classes));
    for (int64_t k = 0; k < classes; ++k) {
      const auto rows = torch::nonzero(predicted == k).squeeze(1);
      if (rows.size(0) == 0) continue;
      log_means.push_back(log_mean(id_train.logits.index_select(0, rows), k));
    }
    log_means_ = torch::stack(log_means);
  }

  // [classes], log of the mean probabilities of samples that are all predicted as `winner`.
  torch::Tensor log_mean(const torch::Tensor& logits, int64_t winner) const {
    const auto odds = class_odds(logits, temperature_);
    auto means = log_probabilities(odds).logsumexp(0) - std::log(logits.size(0));
    // The winner's mean may be all but 1: from what it leaves to the others.
    const auto left = torch::sigmoid(odds.log_others).mean();
    means.select(0, winner).copy_(torch::log1p(-left));
    return means;
  }

  torch::Tensor do_score(const Record& record) const override {
    check(record.logits.size(1) == log_means_.size(1), "kl_matching: logits must have ",
          log_means_.size(1), " classes as in training, got ", record.logits.size(1));
    const auto odds = class_odds(record.logits, temperature_);
    const auto probabilities = log_probabilities(odds).exp();
    const auto smallest_cross_entropy = -probabilities.matmul(log_means_.t()).amax(1);
    // Rounding must not make a divergence negative.
    return -(smallest_cross_entropy - entropy(odds)).clamp_min(0);
  }

  double temperature_;
  torch::Tensor log_means_;  // [predicted classes, classes]
};

const bool kl_matching_registered = detectors().add(
    "kl_matching",
    {
        .summary = "minus the divergence from the usual probabilities of the nearest class",
        .reference =
            "Scaling out-of-distribution detection for real-world settings, arXiv 1911.11132",
        .make = [](const MeasureContext& context,
                   Settings&) { return std::make_unique<KlMatching>(context); },
    });

}  // namespace
}  // namespace kelvin
