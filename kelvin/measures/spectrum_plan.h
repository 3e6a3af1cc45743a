#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "kelvin/measures/feature_spectrum.h"

namespace kelvin {

// How layer_spectrum fits the spectra of all layers into the memory it may use: which protocol, in
// how many passes over the test split, and how many layers at a time.

// What a plan has to keep to.
struct SpectrumLimits {
  int64_t memory = 0;   // bytes that all measures together may hold
  int64_t samples = 0;  // about how many of the test split will be shown; 0: not known
};

// Pilot samples: those from which the anchors of a sketch are computed.  They are stored in half
// the bytes of float32, because anchors are directions, orthonormalised in float32 in any case.
constexpr auto kPilotType = torch::kBFloat16;
int64_t pilot_samples(const SpectrumLimits& limits);

// At most so many spectra are computed at a time, each on a core of its own.
constexpr int64_t kSpectraAtOnce = 2;

// Bytes for spectra when `held` bytes are taken; other measures need memory too.
int64_t spectrum_budget(const SpectrumLimits& limits, int64_t held = 0);

struct SpectrumPlan {
  SpectrumOptions options = {};      // exact instead of a sketch if the samples are few
  std::vector<int64_t> passes = {};  // by layer: the pass that accumulates it, ascending
  std::vector<int64_t> bytes = {};   // by layer: what is accumulated
  // In all passes: anchors of all layers, before that their pilot samples, and the memory for
  // adding rows and computing spectra.
  int64_t held = 0;
  int64_t at_once = 1;  // layers that are updated at the same time

  int64_t count() const { return passes.empty() ? 0 : passes.back() + 1; }
  // Whether each layer would fit if it were alone in its pass.
  bool fits(int64_t memory) const;
  // Bytes of the largest pass.
  int64_t peak() const;
};

// A plan with as few passes as the memory allows, for layers with these numbers of features in
// order of execution; and with as many layers at a time as cost no further pass.
SpectrumPlan plan_spectra(const std::vector<int64_t>& features, const SpectrumOptions& options,
                          const SpectrumLimits& limits);

}  // namespace kelvin
