#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <memory>
#include <string>

#include "kelvin/measures/detectors/detector.h"
#include "tests/support/measured.h"

namespace kelvin {

// A registered detector with these settings.  A setting that does not exist fails.
inline std::unique_ptr<Detector> make_detector(const std::string& name, const Values& values = {},
                                               double temperature = 1) {
  Settings settings("detector." + name, values);
  auto detector = detectors().find(name).make({.temperature = temperature}, settings);
  settings.reject_unknown_keys();
  return detector;
}

inline Record logits_record(const torch::Tensor& logits) {
  return record_of(logits, torch::zeros({logits.size(0)}, torch::kInt64));
}

// What a linear classifier makes of features.
inline Record features_record(const torch::Tensor& features, const torch::Tensor& weight,
                              const torch::Tensor& bias) {
  auto record = logits_record(features.matmul(weight.t()) + bias);
  record.features = features;
  record.weight = weight;
  record.bias = bias;
  return record;
}

inline torch::Tensor fitted_scores(Detector& detector, const Record& train, const Record& test) {
  detector.fit(train);
  return detector.score(test);
}

// Scores of a detector that learns nothing, so that it may be fitted to anything.
inline torch::Tensor unfitted_scores(const std::string& name, const Record& record,
                                     const Values& values = {}, double temperature = 1) {
  auto train = record;
  for (auto* tensor : {&train.logits, &train.features}) {
    if (tensor->defined()) *tensor = torch::zeros_like(*tensor);
  }
  return fitted_scores(*make_detector(name, values, temperature), train, record);
}

// No entry is off by more than this share of what it should be.
inline void expect_ratio(const torch::Tensor& actual, const torch::Tensor& expected,
                         double tolerance) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  const auto difference = (actual - expected).abs();
  EXPECT_TRUE((difference <= tolerance * expected.abs()).all().item<bool>())
      << "got\n"
      << actual << "\ninstead of\n"
      << expected;
}

// Probabilities of logits with 700 digits, which show 1 - p where doubles do not.
inline constexpr const char* kDecimalProbabilities = R"(
from decimal import Decimal, getcontext
getcontext().prec = 700
def probabilities(row):
    powers = [Decimal(float(v)).exp() for v in row]
    return [p / sum(powers) for p in powers]
)";

}  // namespace kelvin
