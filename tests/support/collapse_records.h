#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "tests/support/collapse.h"

namespace kelvin {

inline constexpr int64_t kClasses = 5;

inline LayerRecord output_of(const std::string& name, const torch::Tensor& output) {
  LayerRecord layer;
  layer.name = name;
  layer.output = output;
  return layer;
}

// Features around class means, a layer of maps and the logits; classes of different sizes.
inline Record some_record(int64_t samples, uint64_t seed, Split split = Split::train,
                          const std::string& ood = "") {
  const auto labels = (torch::arange(samples) % 7).clamp_max(kClasses - 1);
  const auto features = noise({samples, 8}, seed) + 2 * noise({kClasses, 8}, 900).index({labels});
  const auto weight = noise({kClasses, 8}, 901) + 0.5 * noise({kClasses, 8}, 900);
  const auto bias = noise({kClasses}, 902);
  auto record = record_of(features.matmul(weight.t()) + bias, labels, split, ood);
  record.features = features.to(torch::kFloat32);
  record.weight = weight.to(torch::kFloat32);
  record.bias = bias.to(torch::kFloat32);
  const auto maps =
      noise({samples, 2, 3, 4}, seed + 1) + noise({kClasses, 2, 3, 4}, 903).index({labels});
  record.layers = {output_of("conv", maps.to(torch::kFloat32)),
                   output_of("fc", record.logits.to(torch::kFloat32))};
  return record;
}

inline std::vector<Record> batches_of(const Record& record, int64_t size) {
  std::vector<Record> batches;
  const auto samples = record.logits.size(0);
  for (int64_t i = 0; i < samples; i += size) {
    batches.push_back(collapse_part(record, torch::arange(i, std::min(samples, i + size))));
  }
  return batches;
}

inline std::set<std::string> names_in(const Readings& readings, const std::string& layer) {
  std::set<std::string> names;
  for (const auto& reading : readings) {
    if (reading.layer == layer) names.insert(reading.name);
  }
  return names;
}

inline const std::set<std::string> kOfLayers = {
    "nc1_trace_pinv",  "nc1_trace_ratio", "nc1_cdnv",        "nc2_equinorm",
    "nc2_equiangular", "nc2_etf_error",   "nc4_ncc_mismatch"};

inline void expect_relative(const Readings& actual, const Readings& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(fields_of(actual[i])["name"], fields_of(expected[i])["name"]);
    EXPECT_EQ(actual[i].definition, expected[i].definition) << expected[i].name;
    EXPECT_NEAR(actual[i].value, expected[i].value, tolerance * std::abs(expected[i].value) + 1e-13)
        << expected[i].name << " " << expected[i].layer;
  }
}

}  // namespace kelvin
