#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "kelvin/ops/tensors.h"

namespace kelvin {

struct CalibrationOptions {
  double temperature = 1;  // probabilities are softmax(logits / temperature)
  int64_t bins = 15;
};

// What a reliability diagram shows, each [bins] in float64; means of an empty bin are 0.
struct Reliability {
  torch::Tensor count;
  torch::Tensor confidence;  // mean
  torch::Tensor accuracy;
};

// How well probabilities tell the fraction of right answers.  The confidence of a sample is its
// largest probability; its answer, the first of the largest logits.
//
// Bin b of B bins of equal width holds the probabilities in (b / B, (b + 1) / B]; the first also
// holds 0, and what lies less than 1e-12 above an edge counts as on it, so that rounding decides
// nothing.
//
// Bins of equal mass: sorted by confidence, a sample with m of n samples below it (half of those
// with the same confidence, itself among them, count as below) goes to bin floor(B m / n).  So
// samples of one confidence, to 1e-12, are never parted, whatever their order, and without such
// ties bins differ by one sample at most.
struct CalibrationQuality {
  int64_t samples = 0;
  int64_t classes = 0;
  double accuracy = 0;
  double nll = 0;             // mean over samples of -log p(label)
  double brier = 0;           // sum over classes of (p - y)^2, mean over samples: from 0 to 2
  double ece = 0;             // sum over bins of |accuracy - mean confidence| count / n
  double ece_equal_mass = 0;  // the same over bins of equal mass
  double ece_classwise = 0;   // mean over classes c of the ECE of p(c) against (label == c)
  double mce = 0;             // largest |accuracy - mean confidence| of a bin of equal width
  Reliability reliability;    // of bins of equal width
};

// Adds up what it takes, batch by batch, in double precision.  How samples are cut into batches
// changes nothing.
class CalibrationSums {
 public:
  explicit CalibrationSums(const CalibrationOptions& options = {});

  // logits [samples, classes] floating and finite, labels [samples] in [0, classes).
  void update(const torch::Tensor& logits, const torch::Tensor& labels);
  void merge(const CalibrationSums& other);  // made with the same options

  int64_t samples() const { return samples_; }
  // Copies; none of no samples.
  NamedTensors state() const;
  // Of at least one sample.
  CalibrationQuality quality() const;

  // Bytes held, and needed for a moment, for so many samples.
  static int64_t bytes(int64_t classes, int64_t samples, int64_t bins);

 private:
  void begin(int64_t classes);
  void add_rows(const torch::Tensor& logits, const torch::Tensor& labels);

  CalibrationOptions options_;
  int64_t classes_ = 0;  // 0 before the first sample
  int64_t samples_ = 0;
  double nll_ = 0;
  double brier_ = 0;
  torch::Tensor class_bins_;  // [classes, bins, 2], of p(c): sums of p(c) and of (label == c)
  std::vector<torch::Tensor> confidences_;
  std::vector<torch::Tensor> hits_;  // whether answers are right, 1 or 0
};

CalibrationQuality calibration_quality(const torch::Tensor& logits, const torch::Tensor& labels,
                                       const CalibrationOptions& options = {});

}  // namespace kelvin
