#include <torch/types.h>

#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/ops/entmax.h"
#include "kelvin/ops/simplex_map.h"

namespace kelvin {
namespace {

struct AsentmaxOptions {
  double alpha = 1.5;
  // Of the factor delta + beta (ln n)^gamma, over n logits that are not masked.  In the paper each
  // head learns beta and gamma from its query; here they are given.
  double delta = 1;
  double beta = 1;
  double gamma = 1;
};

SimplexMap make_asentmax(Settings& settings) {
  AsentmaxOptions options;
  settings.read("alpha", options.alpha);
  check_alpha(settings.full_name("alpha").c_str(), options.alpha);
  const auto read = [&](const char* key, double& field) {
    settings.read(key, field);
    check(std::isfinite(field), settings.full_name(key), ": must be a finite number, got ", field);
  };
  read("delta", options.delta);
  read("beta", options.beta);
  read("gamma", options.gamma);
  check(options.delta >= 0 && options.beta >= 0 && options.delta + options.beta > 0,
        settings.full_name("delta"), ", ", settings.full_name("beta"),
        ": must not be negative nor both 0, got ", options.delta, " and ", options.beta);
  return simplex_map("asentmax", [options](const torch::Tensor& logits) {
    // From ln 2 on, so that a gamma below 0 has a power of a single logit.
    const auto lengths = unmasked_counts(logits).clamp_min(2).log().pow(options.gamma);
    const auto factors = options.delta + options.beta * lengths;
    return alpha_entmax(scaled_logits(logits, factors), options.alpha);
  });
}

const bool asentmax_registered = add_simplex_map(
    "asentmax",
    {
        .summary = "alpha-entmax of (delta + beta * (ln n)^gamma) * logits, over n logits",
        .reference = "Long-context generalization with sparse attention, arXiv 2506.16640",
        .make = make_asentmax,
    });

}  // namespace
}  // namespace kelvin
