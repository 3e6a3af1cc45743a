#include <torch/types.h>

#include <algorithm>
#include <map>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/ops/adaptive_softmax.h"
#include "kelvin/ops/simplex_map.h"

namespace kelvin {
namespace {

PastThePeak past_the_peak_of(Settings& settings) {
  static const std::map<std::string, PastThePeak> choices = {
      {"fall", PastThePeak::fall}, {"hold", PastThePeak::hold}, {"grow", PastThePeak::grow}};
  std::string name = "fall";
  settings.read("past_the_peak", name);
  const auto found = choices.find(name);
  check(found != choices.end(), settings.full_name("past_the_peak"),
        ": must be fall, hold or grow, got '", name, "'");
  return found->second;
}

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
  options.past_the_peak = past_the_peak_of(settings);
  check_adaptive_options("adaptive", options);
  return [options](const torch::Tensor& logits) {
    check_logits("adaptive", logits);
    return adaptive_softmax(logits, options);
  };
}

const bool adaptive_registered = simplex_maps().add(
    "adaptive", {
                    .summary = "softmax of beta * logits, with a beta of at least 1 that is a "
                               "polynomial in the entropy of each row",
                    .reference = "softmax is not enough, arXiv 2410.01104",
                    .make = make_adaptive,
                });

}  // namespace
}  // namespace kelvin
