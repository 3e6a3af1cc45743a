#include <torch/types.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/ops/adaptive_softmax.h"
#include "kelvin/ops/simplex_map.h"

namespace kelvin {
namespace {

SimplexMap make_adaptive(Settings& settings) {
  AdaptiveSoftmaxOptions options;
  std::vector<double> coefficients(options.coefficients.begin(), options.coefficients.end());
  settings.read("coefficients", coefficients);
  check(coefficients.size() == options.coefficients.size(), settings.full_name("coefficients"),
        ": must be ", options.coefficients.size(), " numbers, of the highest power first, got ",
        coefficients.size());
  std::copy(coefficients.begin(), coefficients.end(), options.coefficients.begin());
  settings.read("floor", options.floor);
  settings.read("threshold", options.threshold);
  settings.read("detach_beta", options.detach_beta);
  std::string past_the_peak = "fall";
  settings.read("past_the_peak", past_the_peak);
  options.past_the_peak = past_the_peak_named(settings.full_name("past_the_peak"), past_the_peak);
  check_adaptive_options("adaptive", options);
  return [options](const torch::Tensor& logits, double temperature) {
    auto at_temperature = options;
    at_temperature.temperature = temperature;
    check_logits("adaptive", logits);
    return adaptive_softmax(logits, at_temperature);
  };
}

const bool adaptive_registered = add_simplex_map(
    "adaptive", {
                    .summary = "softmax of beta * logits, with a beta of at least 1 that is a "
                               "polynomial in the entropy of each row",
                    .reference = "softmax is not enough, arXiv 2410.01104",
                    .make = make_adaptive,
                    .operator_name = "adaptive_softmax",
                });

}  // namespace
}  // namespace kelvin
