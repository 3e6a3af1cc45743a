#include "kelvin/experiment/evaluate/detection.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "kelvin/core/check.h"
#include "kelvin/core/reading.h"
#include "kelvin/measures/classifier_collapse.h"
#include "kelvin/numerics/bootstrap.h"
#include "kelvin/numerics/class_means.h"
#include "kelvin/statistics/detection_curve.h"

namespace kelvin {
namespace {

constexpr int64_t kResamples = 400;
// Few calls with many samples: some detectors prepare a search for each.
constexpr int64_t kScoredTogether = 4096;

std::vector<double> list_of(const std::vector<torch::Tensor>& scores) {
  const auto doubles = torch::cat(scores).to(torch::kCPU, torch::kFloat64).contiguous();
  return {doubles.data_ptr<double>(), doubles.data_ptr<double>() + doubles.numel()};
}

struct Number {
  const char* name;
  double DetectionQuality::*value;
  Interval DetectionIntervals::*interval;
  const char* positive;
  const char* interval_by;
};

constexpr auto kKnown = "in distribution";
constexpr auto kOod = "out of distribution";
constexpr auto kBootstrap = "percentiles of 400 resamples, 95 %";

const Number kNumbers[] = {
    {"auroc", &DetectionQuality::auroc, &DetectionIntervals::auroc, kKnown, "DeLong, 95 %"},
    {"aupr_in", &DetectionQuality::aupr_in, &DetectionIntervals::aupr_in, kKnown, kBootstrap},
    {"aupr_out", &DetectionQuality::aupr_out, &DetectionIntervals::aupr_out, kOod, kBootstrap},
    {"fpr95_id", &DetectionQuality::fpr95_id, &DetectionIntervals::fpr95_id, kKnown, kBootstrap},
    {"fpr95_ood", &DetectionQuality::fpr95_ood, &DetectionIntervals::fpr95_ood, kOod, kBootstrap},
};

}  // namespace

std::vector<std::string> detector_names(const std::vector<std::string>& asked) {
  if (asked == std::vector<std::string>{kAllDetectors}) return detectors().names();
  std::set<std::string> seen;
  for (const auto& name : asked) {
    check(name != kAllDetectors, "measure.detectors: '", kAllDetectors,
          "' stands alone, without other names");
    detectors().find(name);
    check(seen.insert(name).second, "measure.detectors: '", name, "' is there twice");
  }
  return asked;
}

void Detection::add(std::unique_ptr<Detector> detector, bool is_optional) {
  detectors_.push_back({.detector = std::move(detector), .is_optional = is_optional});
}

void Detection::Gathered::add(const Record& record) {
  last = record;
  last.layers.clear();
  last.attention.clear();
  samples += record.logits.size(0);
  if (record.features.defined()) features.push_back(record.features);
  logits.push_back(record.logits);
  if (record.labels.defined()) labels.push_back(record.labels);
}

Record Detection::Gathered::whole() const {
  auto record = last;
  record.logits = torch::cat(logits).to(torch::kFloat64);
  if (!labels.empty()) record.labels = torch::cat(labels);
  if (!features.empty()) record.features = torch::cat(features).to(torch::kFloat64);
  return record;
}

void Detection::see_train(const Record& record) { train_.add(record); }

void Detection::with_each(const std::function<void(Scored&)>& work,
                          const std::function<void(const std::string&)>& before_each) {
  std::vector<Scored> kept;
  kept.reserve(detectors_.size());
  for (auto& each : detectors_) {
    before_each(each.detector->name());
    try {
      work(each);
      kept.push_back(std::move(each));
    } catch (const Error& error) {
      if (!each.is_optional) throw;
      notes_.push_back("left out " + std::string(error.what()));
    }
  }
  detectors_ = std::move(kept);
}

void Detection::fit(const std::function<void(const std::string&)>& before_each) {
  const torch::NoGradGuard no_grad;
  check(train_.samples > 0, "detectors: need training samples, got none");
  const auto record = train_.whole();
  train_samples_ = train_.samples;
  train_ = {};
  if (record.features.defined()) {
    class_means_ = class_means(record.features, record.labels, record.classes).means.cpu();
  }
  const auto fit_one = [&](Scored& each) {
    each.detector->fit(record);
    if (each.detector->definition().value("tells_nothing", false)) {
      notes_.push_back(each.detector->name() +
                       " cannot tell samples apart here: see its definition (-o json)");
    }
  };
  with_each(fit_one, before_each);
}

void Detection::see_test(const Record& record) {
  if (detectors_.empty()) return;
  auto& waiting = waiting_[record.ood];
  waiting.add(record);
  if (waiting.samples >= kScoredTogether) score(waiting);
}

void Detection::score(Gathered& waiting) {
  if (waiting.samples == 0) return;
  const torch::NoGradGuard no_grad;
  const auto record = waiting.whole();
  waiting = {};
  with_each([&](Scored& each) {
    auto scores = each.detector->score(record);
    (record.is_ood() ? each.ood[record.ood] : each.id).push_back(std::move(scores));
  });
  if (!record.is_ood() || !class_means_.defined()) return;
  auto& [sum, samples] = ood_[record.ood];
  const auto added = record.features.sum(0).cpu();
  sum = sum.defined() ? sum + added : added;
  samples += record.features.size(0);
}

Readings Detection::orthodev() const {
  Readings readings;
  for (const auto& [name, ood] : ood_) {
    auto reading = orthodev_reading(class_means_, name, ood.sum, ood.samples);
    // Of features that are not finite the notes tell.
    if (!reading || !std::isfinite(reading->value)) continue;
    reading->split = "train";
    reading->definition.update(Definition{{"matrix", "the classifier's input (sample x feature)"},
                                          {"samples", train_samples_},
                                          {"precision", "float32 forward, float64 sums"}});
    readings.push_back(std::move(*reading));
  }
  return readings;
}

Readings Detection::readings_of(const Scored& scored, const Scores& scores) const {
  const DetectionCurve curve(scores.id_scores, scores.ood_scores);
  const auto quality = curve.quality();
  // One sample says nothing about how another would have differed from it.
  const auto fewest = std::min(scores.id_scores.size(), scores.ood_scores.size());
  std::optional<DetectionIntervals> intervals;
  if (fewest > 1) intervals = detection_intervals(curve, {.resamples = kResamples});
  Readings readings;
  readings.reserve(std::size(kNumbers));
  for (const auto& number : kNumbers) {
    auto definition = scored.detector->definition();
    definition["positive"] = number.positive;
    definition["train_samples"] = train_samples_;
    definition["id_samples"] = scores.id_scores.size();
    definition["ood_samples"] = scores.ood_scores.size();
    if (intervals) {
      definition["interval"] = number.interval_by;
    } else {
      definition[kCaveat] =
          c10::str("from one ", scores.id_scores.size() == 1 ? "test" : "OOD",
                   " sample: it has no interval, and another sample may change ", "it to anything");
    }
    readings.push_back(
        {.name = number.name,
         .value = quality.*number.value,
         .split = "test",
         .detector = scores.detector,
         .ood = scores.ood,
         .interval = intervals ? std::optional(*intervals.*number.interval) : std::nullopt,
         .definition = std::move(definition)});
  }
  return readings;
}

Detected Detection::results(const OodGroups& groups) {
  for (auto& [ood, waiting] : waiting_) score(waiting);
  check(!detectors_.empty() || notes_.empty(),
        "detectors: none could be used: ", notes_.empty() ? "" : notes_.front());
  Detected detected;
  for (const auto& each : detectors_) {
    for (const auto& [name, scored] : each.ood) {
      const auto& scores = detected.scores.emplace_back(Scores{.detector = each.detector->name(),
                                                               .ood = name,
                                                               .id_scores = list_of(each.id),
                                                               .ood_scores = list_of(scored)});
      for (auto& reading : readings_of(each, scores)) {
        detected.readings.push_back(std::move(reading));
      }
    }
  }
  for (auto& mean : group_means(detected.readings, groups)) {
    detected.readings.push_back(std::move(mean));
  }
  return detected;
}

int64_t Detection::memory(const Record& example, int64_t samples) const {
  if (detectors_.empty()) return 0;
  const auto width = example.features.defined() ? example.features.size(1) : 0;
  // As they were gathered in float32, in float64, and what a detector makes of them: at most two
  // more in float64 and one in float32, and a few matrices of all pairs of features.
  constexpr int64_t kBytes = 4 + 8 + 2 * 8 + 4;
  constexpr int64_t kMatrices = 4;
  return (samples + kScoredTogether) * (width + example.logits.size(1)) * kBytes +
         kMatrices * width * width * int64_t{sizeof(double)};
}

}  // namespace kelvin
