#pragma once

#include <torch/types.h>

#include <string>

#include "tests/support/detectors.h"
#include "tests/support/tensors.h"

namespace kelvin {

// Features without a classifier: logits are 0, and labels go round.
inline Record unclassified(const torch::Tensor& features, int64_t classes = 3) {
  auto record = logits_record(torch::zeros({features.size(0), classes}, torch::kFloat64));
  record.labels = torch::arange(features.size(0)) % classes;
  record.features = features;
  return record;
}

// Of a detector with these settings, in one go.
inline torch::Tensor scores_of(const std::string& name, const Record& train, const Record& test,
                               const Values& values = {}, double temperature = 1) {
  return fitted_scores(*make_detector(name, values, temperature), train, test);
}

// [rows, dims] around the means of classes, which go round, and more scattered in some directions
// than in others.
inline torch::Tensor clustered(int64_t rows, int64_t dims, int64_t classes, uint64_t seed) {
  const auto means = 3 * noise({classes, dims}, 1000);
  const auto scales = torch::logspace(0, -1.5, dims, 10, torch::kFloat64);
  return means.index_select(0, torch::arange(rows) % classes) +
         (noise({rows, dims}, seed) * scales).matmul(noise({dims, dims}, 1001)) / 2;
}

// A random orthogonal matrix.
inline torch::Tensor rotation(int64_t dims, uint64_t seed) {
  return std::get<0>(torch::linalg_qr(noise({dims, dims}, seed)));
}

// In the mean and in the middle.
inline void expect_lower(const torch::Tensor& ood, const torch::Tensor& own) {
  EXPECT_LT(ood.mean().item<double>(), own.mean().item<double>());
  EXPECT_LT(ood.median().item<double>(), own.median().item<double>());
}

}  // namespace kelvin
