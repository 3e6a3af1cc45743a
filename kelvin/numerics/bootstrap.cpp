#include "kelvin/numerics/bootstrap.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/ops/parallel_for.h"

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

double percentile(const std::vector<double>& sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
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

namespace {

using Places = std::vector<uint32_t>;

constexpr double kNormalQuantile = 1.959963984540054;  // leaves 2.5 % above it

double variance_of(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const auto count = static_cast<double>(values.size());
  double mean = 0;
  for (const double value : values) mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares / (count - 1);
}

// Of each sample: the fraction of the others that it beats, ties half; `is_above` if it should have
// the higher score.
std::vector<double> shares_beaten(const Places& samples, const Places& others, size_t distinct,
                                  bool is_above) {
  const auto counts = counts_of(others, distinct);
  const auto total = static_cast<double>(others.size());
  std::vector<double> share_at(distinct);
  double before = 0;  // with higher scores
  for (size_t place = 0; place < distinct; ++place) {
    const auto same = static_cast<double>(counts[place]);
    const double beaten = is_above ? total - before - same : before;
    share_at[place] = (beaten + 0.5 * same) / total;
    before += same;
  }
  std::vector<double> fractions(samples.size());
  std::transform(samples.begin(), samples.end(), fractions.begin(),
                 [&](uint32_t place) { return share_at[place]; });
  return fractions;
}

// DeLong, DeLong and Clarke-Pearson 1988.
Interval delong(const DetectionCurve& curve) {
  const auto& id = curve.id_places();
  const auto& ood = curve.ood_places();
  const auto of_id = shares_beaten(id, ood, curve.distinct(), /*is_above=*/true);
  const auto of_ood = shares_beaten(ood, id, curve.distinct(), /*is_above=*/false);
  const double std_error = std::sqrt(variance_of(of_id) / static_cast<double>(id.size()) +
                                     variance_of(of_ood) / static_cast<double>(ood.size()));
  const double auroc = curve.quality().auroc;
  return {.low = std::max(0.0, auroc - kNormalQuantile * std_error),
          .high = std::min(1.0, auroc + kNormalQuantile * std_error)};
}

// As many samples drawn with replacement.
PlaceCounts resampled(const Places& places, size_t distinct, uint64_t stream) {
  PlaceCounts counts(distinct, 0);
  const auto samples = static_cast<uint64_t>(places.size());
  for (uint64_t draw = 0; draw < samples; ++draw) {
    const auto bits = scramble(stream + draw);
    ++counts[places[((bits >> 32U) * samples) >> 32U]];
  }
  return counts;
}

std::vector<DetectionQuality> resampled_qualities(const DetectionCurve& curve,
                                                  const BootstrapOptions& options) {
  std::vector<DetectionQuality> qualities(static_cast<size_t>(options.resamples));
  parallel_for(0, options.resamples, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      // Each resample has its own streams, so that threads do not change what is drawn.
      const auto stream = scramble(options.seed ^ scramble(static_cast<uint64_t>(i)));
      qualities[static_cast<size_t>(i)] =
          quality_of(resampled(curve.id_places(), curve.distinct(), stream),
                     resampled(curve.ood_places(), curve.distinct(), scramble(stream)));
    }
  });
  return qualities;
}

}  // namespace

DetectionIntervals detection_intervals(const DetectionCurve& curve,
                                       const BootstrapOptions& options) {
  check(options.resamples >= 1, "detection_intervals: resamples must be at least 1, got ",
        options.resamples);
  const auto qualities = resampled_qualities(curve, options);
  const auto interval_of = [&](double DetectionQuality::*field) {
    std::vector<double> numbers(qualities.size());
    std::transform(qualities.begin(), qualities.end(), numbers.begin(),
                   [&](const DetectionQuality& quality) { return quality.*field; });
    return percentile_interval(std::move(numbers));
  };
  return {.auroc = delong(curve),
          .aupr_in = interval_of(&DetectionQuality::aupr_in),
          .aupr_out = interval_of(&DetectionQuality::aupr_out),
          .fpr95_id = interval_of(&DetectionQuality::fpr95_id),
          .fpr95_ood = interval_of(&DetectionQuality::fpr95_ood)};
}

}  // namespace kelvin
