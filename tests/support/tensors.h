#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace kelvin {

// Standard normal numbers in double precision, the same for the same seed.
inline torch::Tensor noise(const std::vector<int64_t>& shape, uint64_t seed) {
  return torch::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed), torch::kFloat64);
}

inline torch::Tensor doubles(const std::vector<double>& values) {
  return torch::tensor(values, torch::kFloat64);
}

inline torch::Tensor labels_of(const std::vector<int64_t>& values) {
  return torch::tensor(values, torch::kInt64);
}

// No entry differs by more than `tolerance`; a NaN differs from everything.
inline void expect_close(const torch::Tensor& actual, const torch::Tensor& expected,
                         double tolerance) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  const auto difference = (actual.to(torch::kFloat64) - expected.to(torch::kFloat64)).abs();
  EXPECT_TRUE((difference <= tolerance).all().item<bool>()) << "got\n"
                                                            << actual << "\ninstead of\n"
                                                            << expected;
}

}  // namespace kelvin
