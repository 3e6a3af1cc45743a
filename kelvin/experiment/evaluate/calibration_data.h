#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>

#include "kelvin/core/reading.h"
#include "kelvin/experiment/tasks/calibrate.h"

namespace kelvin {

struct LabelledLogits {
  torch::Tensor logits;  // [samples, classes], as the network gave them
  torch::Tensor labels;  // [samples] int64

  int64_t size() const { return labels.size(0); }
};

// What a network did with images that calibration is fitted on, and with others that it is tested
// on.
struct CalibrationData {
  LabelledLogits fit;
  LabelledLogits test;
  double temperature = 1;  // of the softmax before anything is fitted
  int64_t bins = 0;
  std::string precision = {};
  // Which samples both are: fitted_on, fit_samples, tested_on, samples, precision and, if a split
  // was halved at random, halves_seed.
  Definition samples = {};
  std::string fit_split = {};  // "validation" or "test"
};

// From the dumps, the run or the weights of the request.  An Error if there is nothing to fit on,
// or if memory does not suffice.
CalibrationData calibration_data(const CalibrateRequest& request, const RunContext& context);

}  // namespace kelvin
