#include "kelvin/experiment/tasks/theory_dispersion.h"

#include <torch/torch.h>

#include "kelvin/core/check.h"
#include "kelvin/numerics/dispersion.h"

namespace kelvin {
namespace {

void add_bounds(Readings& readings, double spread, int64_t length, double temperature) {
  const auto n = static_cast<double>(length);
  const Definition definition = {{"spread", spread}, {"n", length}, {"temperature", temperature}};
  const auto add = [&](const char* bound, const char* side, double value) {
    auto meaning = definition;
    meaning["bound"] = bound;
    meaning["side"] = side;
    readings.push_back({.name = "weight_bound", .value = value, .definition = meaning});
  };
  const auto lemma = lemma_bounds(n, spread, temperature);
  const auto sharp = sharp_bounds(n, spread, temperature);
  add("lemma", "low", lemma.low);
  add("lemma", "high", lemma.high);
  add("sharp", "low", sharp.low);
  add("sharp", "high", sharp.high);
  auto meaning = definition;
  meaning["unit"] = "nats";
  meaning["side"] = "low";
  readings.push_back({.name = "entropy_bound",
                      .value = least_entropy(n, spread, temperature),
                      .definition = meaning});
}

}  // namespace

Readings theory_dispersion(const DispersionRequest& request, const RunContext& /*context*/) {
  constexpr int64_t kMostLength = 1'000'000'000;
  check(!request.spreads.empty() && !request.lengths.empty(),
        "theory dispersion: needs at least one spread and one length");
  for (const auto length : request.lengths) {
    check(length >= 1 && length <= kMostLength, "theory dispersion: lengths must be from 1 to ",
          kMostLength, ", got ", length);
  }
  Readings readings;
  for (const double spread : request.spreads) {
    constexpr double kHalf = 0.5;
    readings.push_back({.name = "dispersion_length",
                        .value = dispersion_length(spread, request.temperature, kHalf),
                        .definition = {{"spread", spread},
                                       {"temperature", request.temperature},
                                       {"weight", kHalf},
                                       {"formula", "1 + exp(spread / T) (1 - weight) / weight"}}});
    for (const auto length : request.lengths) {
      add_bounds(readings, spread, length, request.temperature);
    }
  }
  return readings;
}

namespace {

const bool theory_dispersion_registered = add_task(theory_dispersion);

}  // namespace
}  // namespace kelvin
