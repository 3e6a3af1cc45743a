#include "kelvin/measures/spectrum_plan.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace kelvin {
namespace {

constexpr int64_t kMostPilots = 1024;
constexpr int64_t kPilotBytes = 2;  // of a number of kPilotType
// Exact products of so few samples cost less than a sketch of their features.
constexpr int64_t kFewSamples = 1024;

// A sketch is replaced by the exact spectrum where samples are few and their features fit.
SpectrumOptions affordable(const std::vector<int64_t>& features, const SpectrumOptions& options,
                           const SpectrumLimits& limits) {
  if (options.protocol != SpectrumProtocol::sketch || limits.samples > kFewSamples) return options;
  auto exact = options;
  exact.protocol = SpectrumProtocol::exact;
  int64_t bytes = 0;
  int64_t working = 0;
  for (const auto dims : features) {
    const auto own = FeatureSpectrum::bytes_for(dims, limits.samples, exact);
    bytes += own.held;
    working = std::max(working, own.working);
  }
  return bytes <= spectrum_budget(limits, kSpectraAtOnce * working) ? exact : options;
}

SpectrumPlan plan_at_once(const std::vector<int64_t>& features, const SpectrumOptions& options,
                          const SpectrumLimits& limits, int64_t at_once) {
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  SpectrumPlan plan{.options = options, .at_once = at_once};
  const auto pilots = options.anchors > 0 ? pilot_samples(limits) : 0;
  int64_t working = 0;
  int64_t adding = 0;
  for (const auto dims : features) {
    const auto own = FeatureSpectrum::bytes_for(dims, limits.samples, options);
    plan.bytes.push_back(own.held);
    working = std::max(working, own.working);
    adding = std::max(adding, own.adding);
    const bool is_sketched = options.protocol == SpectrumProtocol::sketch && dims > options.sketch;
    // Anchors, signs and the mean; and the pilot samples.
    if (is_sketched) plan.held += dims * (kFloat * (options.anchors + 2) + kPilotBytes * pilots);
  }
  plan.held += std::max(std::min(at_once, kSpectraAtOnce) * working, at_once * adding);
  int64_t used = 0;
  int64_t pass = 0;
  for (const auto bytes : plan.bytes) {
    if (used > 0 && used + bytes > spectrum_budget(limits, plan.held)) {
      ++pass;
      used = 0;
    }
    used += bytes;
    plan.passes.push_back(pass);
  }
  return plan;
}

}  // namespace

// Half of the samples at most: finding anchors should not take longer than the sketch itself.
int64_t pilot_samples(const SpectrumLimits& limits) {
  if (limits.samples <= 0) return kMostPilots;
  return std::clamp<int64_t>(limits.samples / 2, 1, kMostPilots);
}

int64_t spectrum_budget(const SpectrumLimits& limits, int64_t held) {
  return std::max<int64_t>(0, limits.memory / 4 * 3 - held);
}

bool SpectrumPlan::fits(int64_t memory) const {
  return std::all_of(bytes.begin(), bytes.end(), [&](int64_t own) { return held + own <= memory; });
}

int64_t SpectrumPlan::peak() const {
  int64_t of_pass = 0;
  int64_t largest = 0;
  for (size_t i = 0; i < passes.size(); ++i) {
    if (i > 0 && passes[i] != passes[i - 1]) of_pass = 0;
    of_pass += bytes[i];
    largest = std::max(largest, of_pass);
  }
  return held + largest;
}

SpectrumPlan plan_spectra(const std::vector<int64_t>& features, const SpectrumOptions& options,
                          const SpectrumLimits& limits) {
  const auto chosen = affordable(features, options, limits);
  const auto most = std::max<int64_t>(at::get_num_threads(), kSpectraAtOnce);
  const auto smallest = plan_at_once(features, chosen, limits, 1);
  for (auto at_once = most; at_once > 1; --at_once) {
    auto plan = plan_at_once(features, chosen, limits, at_once);
    if (plan.count() == smallest.count() && plan.fits(limits.memory)) return plan;
  }
  return smallest;
}

}  // namespace kelvin
