#include "kelvin/numerics/calibration.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/ops/cross_entropy.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

constexpr const char* kCalibrationName = "calibration";
constexpr double kSumRounding = 1e-12;  // probabilities that differ by less are equal
constexpr int64_t kCalibrationChunk = int64_t{1} << 17;  // probabilities at a time
constexpr int64_t kMostBins = int64_t{1} << 16;

int64_t rows_at_a_time(int64_t classes) {
  return std::max<int64_t>(1, kCalibrationChunk / classes);
}

int64_t bin_of(double probability, int64_t bins) {
  const double place = std::ceil((probability - kSumRounding) * static_cast<double>(bins)) - 1;
  return std::clamp(static_cast<int64_t>(place), int64_t{0}, bins - 1);
}

// Samples in bins by their confidence.
class ConfidenceBins {
 public:
  explicit ConfidenceBins(int64_t bins)
      : counts_(static_cast<size_t>(bins)), confidences_(counts_), hits_(counts_) {}

  void add(int64_t bin, double confidence, double hit) {
    const auto place = static_cast<size_t>(bin);
    counts_[place] += 1;
    confidences_[place] += confidence;
    hits_[place] += hit;
  }

  double expected_error(int64_t samples) const {
    double sum = 0;
    for (size_t b = 0; b < counts_.size(); ++b) sum += std::abs(hits_[b] - confidences_[b]);
    return sum / static_cast<double>(samples);
  }

  double largest_error() const {
    double largest = 0;
    for (size_t b = 0; b < counts_.size(); ++b) {
      if (counts_[b] == 0) continue;
      largest = std::max(largest, std::abs(hits_[b] - confidences_[b]) / counts_[b]);
    }
    return largest;
  }

  Reliability reliability() const {
    const auto count = torch::tensor(counts_, torch::kFloat64);
    const auto divisor = count.clamp_min(1);
    return {.count = count,
            .confidence = torch::tensor(confidences_, torch::kFloat64) / divisor,
            .accuracy = torch::tensor(hits_, torch::kFloat64) / divisor};
  }

 private:
  std::vector<double> counts_;
  std::vector<double> confidences_;  // sums
  std::vector<double> hits_;         // sums
};

ConfidenceBins equal_width_bins(const torch::Tensor& confidences, const torch::Tensor& hits,
                                int64_t bins) {
  ConfidenceBins filled(bins);
  const auto* confidence = confidences.data_ptr<double>();
  const auto* hit = hits.data_ptr<double>();
  for (int64_t i = 0; i < confidences.size(0); ++i) {
    filled.add(bin_of(confidence[i], bins), confidence[i], hit[i]);
  }
  return filled;
}

ConfidenceBins equal_mass_bins(const torch::Tensor& confidences, const torch::Tensor& hits,
                               int64_t bins) {
  ConfidenceBins filled(bins);
  const auto samples = confidences.size(0);
  const auto order = torch::argsort(confidences, /*stable=*/true, /*dim=*/0, /*descending=*/false);
  const auto sorted = confidences.index_select(0, order);
  const auto sorted_hits = hits.index_select(0, order);
  const auto* confidence = sorted.data_ptr<double>();
  const auto* hit = sorted_hits.data_ptr<double>();
  for (int64_t begin = 0; begin < samples;) {
    int64_t end = begin + 1;
    while (end < samples && confidence[end] - confidence[begin] <= kSumRounding) ++end;
    const auto bin = bins * (begin + end) / (2 * samples);
    for (auto i = begin; i < end; ++i) filled.add(bin, confidence[i], hit[i]);
    begin = end;
  }
  return filled;
}

}  // namespace

CalibrationSums::CalibrationSums(const CalibrationOptions& options) : options_(options) {
  check_temperature(kCalibrationName, options.temperature);
  check(options.bins >= 1 && options.bins <= kMostBins, kCalibrationName,
        ": bins must be from 1 to ", kMostBins, ", got ", options.bins);
}

void CalibrationSums::begin(int64_t classes) {
  classes_ = classes;
  class_bins_ = torch::zeros({classes, options_.bins, 2}, torch::kFloat64);
}

void CalibrationSums::update(const torch::Tensor& logits, const torch::Tensor& labels) {
  at::NoGradGuard no_grad;
  check_loss_arguments(kCalibrationName, logits, labels,
                       torch::tensor(options_.temperature, torch::kFloat64));
  check(torch::isfinite(logits).all().item<bool>(), kCalibrationName,
        ": logits must be finite, have a NaN or an infinity");
  if (classes_ == 0) begin(logits.size(1));
  check(logits.size(1) == classes_, kCalibrationName, ": logits must have ", classes_,
        " classes as before, got ", logits.sizes());
  const auto rows = rows_at_a_time(classes_);
  for (int64_t first = 0; first < logits.size(0); first += rows) {
    add_rows(logits.slice(0, first, first + rows).to(torch::kCPU, torch::kFloat64),
             labels.slice(0, first, first + rows).to(torch::kCPU, torch::kInt64).contiguous());
  }
}

void CalibrationSums::add_rows(const torch::Tensor& logits, const torch::Tensor& labels) {
  const auto rows = logits.size(0);
  const auto bins = options_.bins;
  const auto logs = log_softmax(logits, {.temperature = options_.temperature}).contiguous();
  const auto probabilities = logs.exp();
  const auto answers = logits.argmax(1);
  const auto confidences = probabilities.gather(1, answers.unsqueeze(1)).squeeze(1).contiguous();
  const auto* log = logs.data_ptr<double>();
  const auto* probability = probabilities.data_ptr<double>();
  const auto* label = labels.data_ptr<int64_t>();
  auto* in_bins = class_bins_.data_ptr<double>();
  for (int64_t i = 0; i < rows; ++i, log += classes_, probability += classes_) {
    nll_ -= log[label[i]];
    for (int64_t c = 0; c < classes_; ++c) {
      const double target = c == label[i] ? 1 : 0;
      const double error = probability[c] - target;
      brier_ += error * error;
      auto* bin = in_bins + 2 * (c * bins + bin_of(probability[c], bins));
      bin[0] += probability[c];
      bin[1] += target;
    }
  }
  check(std::isfinite(nll_), kCalibrationName,
        ": logits over the temperature differ by more than double precision can hold");
  samples_ += rows;
  confidences_.push_back(confidences);
  hits_.push_back((answers == labels).to(torch::kFloat64));
}

void CalibrationSums::merge(const CalibrationSums& other) {
  if (other.samples_ == 0) return;
  if (classes_ == 0) begin(other.classes_);
  check(classes_ == other.classes_, kCalibrationName, ": cannot merge ", classes_, " and ",
        other.classes_, " classes");
  samples_ += other.samples_;
  nll_ += other.nll_;
  brier_ += other.brier_;
  class_bins_ += other.class_bins_;
  confidences_.insert(confidences_.end(), other.confidences_.begin(), other.confidences_.end());
  hits_.insert(hits_.end(), other.hits_.begin(), other.hits_.end());
}

NamedTensors CalibrationSums::state() const {
  if (samples_ == 0) return {};
  return {{"sums", torch::tensor({nll_, brier_}, torch::kFloat64)},
          {"class_bins", class_bins_.clone()},
          {"confidences", torch::cat(confidences_)},
          {"hits", torch::cat(hits_)}};
}

CalibrationQuality CalibrationSums::quality() const {
  check(samples_ > 0, kCalibrationName, ": needs at least one sample, got none");
  const auto n = static_cast<double>(samples_);
  const auto confidences = torch::cat(confidences_);
  const auto hits = torch::cat(hits_);
  const auto by_width = equal_width_bins(confidences, hits, options_.bins);
  const auto by_class = (class_bins_.select(2, 0) - class_bins_.select(2, 1)).abs().sum(1) / n;
  return {
      .samples = samples_,
      .classes = classes_,
      .accuracy = hits.mean().item<double>(),
      .nll = nll_ / n,
      .brier = brier_ / n,
      .ece = by_width.expected_error(samples_),
      .ece_equal_mass = equal_mass_bins(confidences, hits, options_.bins).expected_error(samples_),
      .ece_classwise = by_class.mean().item<double>(),
      .mce = by_width.largest_error(),
      .reliability = by_width.reliability()};
}

int64_t CalibrationSums::bytes(int64_t classes, int64_t samples, int64_t bins) {
  const auto chunk = classes * std::min(samples, rows_at_a_time(classes));
  // Of each sample confidence and hit: held, joined, sorted, and the order.
  const auto numbers = 7 * samples + 2 * classes * bins + 6 * bins + 3 * chunk;
  return numbers * static_cast<int64_t>(sizeof(double));
}

CalibrationQuality calibration_quality(const torch::Tensor& logits, const torch::Tensor& labels,
                                       const CalibrationOptions& options) {
  CalibrationSums sums(options);
  sums.update(logits, labels);
  return sums.quality();
}

}  // namespace kelvin
