#include "kelvin/math/bootstrap.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"

namespace kelvin {
namespace {

// How often each sample is drawn: [samples, resamples] of the resamples from `first`.
torch::Tensor drawn_counts(int64_t samples, int64_t first, int64_t resamples, uint64_t seed) {
  auto counts = torch::zeros({resamples, samples}, torch::kFloat64);
  auto* count = counts.data_ptr<double>();
  for (int64_t i = 0; i < resamples; ++i, count += samples) {
    // Each resample has its own stream, so that blocks do not change what is drawn.
    const auto stream = scramble(seed ^ scramble(static_cast<uint64_t>(first + i)));
    for (int64_t draw = 0; draw < samples; ++draw) {
      const auto bits = scramble(stream + static_cast<uint64_t>(draw));
      // The high half of the product: uniform below `samples` to 2^-32.
      ++count[((bits >> 32U) * static_cast<uint64_t>(samples)) >> 32U];
    }
  }
  return counts.t();
}

double percentile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(std::floor(place));
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
}

}  // namespace

torch::Tensor bootstrap_means(const torch::Tensor& values, const BootstrapOptions& options) {
  check(values.dim() == 2 && values.size(1) > 0,
        "bootstrap_means: values must be [rows, samples], got ", values.sizes());
  check(values.size(1) < (int64_t{1} << 32), "bootstrap_means: takes fewer than 2^32 samples, got ",
        values.size(1));
  check(options.resamples >= 1, "bootstrap_means: resamples must be at least 1, got ",
        options.resamples);
  const auto samples = values.size(1);
  // All counts at once would be resamples x samples.
  const auto block = std::clamp<int64_t>((int64_t{1} << 22) / samples, 1, options.resamples);
  const auto doubles = values.to(torch::kFloat64);
  std::vector<torch::Tensor> means;
  means.reserve(static_cast<size_t>((options.resamples + block - 1) / block));
  for (int64_t first = 0; first < options.resamples; first += block) {
    const auto count = std::min(block, options.resamples - first);
    means.push_back(doubles.matmul(drawn_counts(samples, first, count, options.seed)).t());
  }
  return torch::cat(means) / static_cast<double>(samples);
}

Interval percentile_interval(std::vector<double> numbers, double level) {
  check(!numbers.empty(), "percentile_interval: needs at least one number");
  check(level > 0 && level < 1, "percentile_interval: level must be in (0, 1), got ", level);
  std::sort(numbers.begin(), numbers.end());
  return {.low = percentile(numbers, (1 - level) / 2),
          .high = percentile(numbers, (1 + level) / 2)};
}

}  // namespace kelvin
