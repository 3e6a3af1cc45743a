#include "kelvin/numerics/temperature_scaling.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/ops/cross_entropy.h"

namespace kelvin {
namespace {

constexpr const char* kTemperatureName = "fit_temperature";
constexpr int64_t kTemperatureChunk = int64_t{1} << 18;  // logits at a time
constexpr double kNoise = 1e-14;  // of a mean of numbers, relative to their size
constexpr double kExpansion = 4;
// Of beta times the largest distance between two logits of a sample: beyond it, logits that the
// softmax still takes for equal differ by rounding only.
constexpr double kLargest = 1e16;

// The mean NLL at one beta.
struct NllValue {
  double beta = 0;
  double nll = 0;
  double slope = 0;
  double curvature = 0;
};

// All in units in which the largest distance between two logits of one sample is 1.
class Likelihood {
 public:
  // `target_of` gives the mean logit [rows] under the targets of the rows from `first` on.
  using TargetOf = std::function<torch::Tensor(const torch::Tensor& rows, int64_t first)>;

  Likelihood(torch::Tensor logits, const TargetOf& target_of) : logits_(std::move(logits)) {
    std::vector<torch::Tensor> targets;
    double distances = 0;
    for_each_chunk([&](const torch::Tensor& rows, int64_t first) {
      const auto lowest = rows.amin(1);
      unit_ = std::max(unit_, -lowest.min().item<double>());
      distances -= lowest.sum().item<double>();
      targets.push_back(target_of(rows, first));
    });
    check(std::isfinite(unit_), kTemperatureName,
          ": logits of a sample differ by more than double precision can hold");
    targets_ = torch::cat(targets);
    if (unit_ == 0) return;
    targets_ /= unit_;
    mean_distance_ = distances / unit_ / samples();
  }

  double unit() const { return unit_; }
  // Of the slope at beta = 0, the mean of numbers as large as the distances.
  double noise() const { return kNoise * mean_distance_; }
  // Whether every target has the highest logit of its sample.
  bool is_separated() const { return targets_.eq(0).all().item<bool>(); }

  NllValue at(double beta) const {
    NllValue value{.beta = beta};
    for_each_chunk([&](const torch::Tensor& rows, int64_t first) {
      const auto distances = rows / unit_;
      const auto target = targets_.slice(0, first, first + rows.size(0));
      const auto odds = (distances * beta).exp();
      const auto sum = odds.sum(1);
      const auto weighted = odds * distances;
      const auto mean = weighted.sum(1) / sum;
      const auto square = (weighted * distances).sum(1) / sum;
      value.nll += (sum.log() - beta * target).sum().item<double>();
      value.slope += (mean - target).sum().item<double>();
      value.curvature += (square - mean.square()).clamp_min(0).sum().item<double>();
    });
    value.nll /= samples();
    value.slope /= samples();
    value.curvature /= samples();
    return value;
  }

 private:
  double samples() const { return static_cast<double>(logits_.size(0)); }

  // Rows in double precision, with 0 as the largest entry of each.
  template <class Consume>
  void for_each_chunk(const Consume& consume) const {
    const auto rows = std::max<int64_t>(1, kTemperatureChunk / logits_.size(1));
    for (int64_t first = 0; first < logits_.size(0); first += rows) {
      const auto chunk = logits_.slice(0, first, first + rows).to(torch::kCPU, torch::kFloat64);
      consume(chunk - chunk.amax(1, /*keepdim=*/true), first);
    }
  }

  torch::Tensor logits_;
  torch::Tensor targets_;  // [samples], mean logit under the targets, 0 at most
  double unit_ = 0;
  double mean_distance_ = 0;  // over samples, of the largest and the smallest logit
};

// The slope changes its sign between the two ends, at first somewhere above 0.
class Bracket {
 public:
  Bracket(const Likelihood& likelihood, const TemperatureScalingOptions& options)
      : likelihood_(likelihood), options_(options) {}

  // The end at 0 needs no search: the slope is known to be below 0 there.
  void start(const NllValue& at_zero) {
    low_ = at_zero;
    // Newton's first step; where the minimum is far, short of it.
    look_at(-at_zero.slope / at_zero.curvature);
    while (!has_high_ && latest_.beta < kLargest && has_iterations()) {
      look_at(latest_.beta * kExpansion);
    }
    while (has_high_ && low_.beta == 0 && has_iterations()) look_at(high_.beta / kExpansion);
  }

  void narrow() {
    if (!is_closed()) return;
    bool is_shrinking = true;
    while (!is_narrow() && has_iterations()) {
      const double before = width();
      look_at(is_shrinking ? guess() : middle());
      is_shrinking = width() <= 0.6 * before;
    }
  }

  void count_evaluation() { ++iterations_; }
  bool is_closed() const { return has_high_ && low_.beta > 0; }
  bool is_narrow() const {
    return is_closed() && high_.beta <= low_.beta * (1 + options_.tolerance);
  }
  bool has_iterations() const { return iterations_ < options_.max_iterations; }
  int64_t iterations() const { return iterations_; }
  const NllValue& low() const { return low_; }
  const NllValue& high() const { return has_high_ ? high_ : latest_; }

  // Where a straight line between the slopes at the two ends is 0.
  double root() const {
    const double fraction = -low_.slope / (high_.slope - low_.slope);
    return low_.beta + fraction * (high_.beta - low_.beta);
  }

 private:
  double width() const { return std::log(high_.beta / low_.beta); }
  double middle() const { return std::sqrt(low_.beta) * std::sqrt(high_.beta); }

  // Newton's step from the better end, and a little more than that, so that it ends on the other
  // side of the minimum: then both ends come closer, not always the same one.
  double guess() const {
    const auto& best = -low_.slope < high_.slope ? low_ : high_;
    const double step = -best.slope / best.curvature;
    const double beyond = std::max(step * step / best.beta, options_.tolerance / 4 * best.beta);
    const double guess = best.beta + step + std::copysign(beyond, step);
    const bool is_inside = guess > low_.beta && guess < high_.beta;  // not so if it is NaN
    return is_inside ? guess : middle();
  }

  void look_at(double beta) {
    latest_ = likelihood_.at(beta);
    ++iterations_;
    if (latest_.slope < 0) {
      low_ = latest_;
    } else {
      high_ = latest_;
      has_high_ = true;
    }
  }

  const Likelihood& likelihood_;
  TemperatureScalingOptions options_;
  NllValue low_;
  NllValue high_;
  NllValue latest_;
  bool has_high_ = false;
  int64_t iterations_ = 0;
};

// From the units of Likelihood to those of the logits.
void set_ends(FittedTemperature& fitted, const NllValue& low, const NllValue& high, double unit) {
  fitted.low = low.beta / unit;
  fitted.high = high.beta / unit;
  fitted.low_slope = low.slope * unit;
  fitted.high_slope = high.slope * unit;
}

FittedTemperature fit(const Likelihood& likelihood, const TemperatureScalingOptions& options) {
  FittedTemperature fitted;
  if (likelihood.unit() == 0) return fitted;  // flat
  const auto at_zero = likelihood.at(0);
  Bracket bracket(likelihood, options);
  bracket.count_evaluation();
  const bool is_at_chance = at_zero.slope >= -likelihood.noise();
  if (is_at_chance || likelihood.is_separated()) {
    fitted.status = is_at_chance ? TemperatureStatus::at_chance : TemperatureStatus::unbounded;
    bracket.count_evaluation();
    set_ends(fitted, at_zero, likelihood.at(kLargest), likelihood.unit());
    fitted.iterations = bracket.iterations();
    return fitted;
  }
  bracket.start(at_zero);
  bracket.narrow();
  fitted.iterations = bracket.iterations();
  fitted.status = bracket.is_closed() || !(bracket.high().beta >= kLargest)
                      ? TemperatureStatus::found
                      : TemperatureStatus::unbounded;
  set_ends(fitted, bracket.low(), bracket.high(), likelihood.unit());
  fitted.converged = bracket.is_narrow();
  if (!fitted.converged) return fitted;
  const double beta = bracket.root();
  fitted.temperature = likelihood.unit() / beta;
  fitted.nll = likelihood.at(beta).nll;
  return fitted;
}

void check_logits(const torch::Tensor& logits) {
  check(torch::isfinite(logits).all().item<bool>(), kTemperatureName,
        ": logits must be finite, have a NaN or an infinity");
}

void check_probabilities(const torch::Tensor& logits, const torch::Tensor& probabilities) {
  check(logits.dim() == 2 && logits.numel() > 0 && logits.is_floating_point(), kTemperatureName,
        ": logits must be floating [samples, classes], at least one of each, got ", logits.sizes());
  check(probabilities.sizes() == logits.sizes() && probabilities.is_floating_point(),
        kTemperatureName, ": shares must be floating ", logits.sizes(), ", got ",
        probabilities.sizes());
  const bool are_probabilities = probabilities.ge(0).all().item<bool>() &&
                                 probabilities.sum(1, /*keepdim=*/false, torch::kFloat64)
                                     .sub(1)
                                     .abs()
                                     .le(1e-6)
                                     .all()
                                     .item<bool>();
  check(are_probabilities, kTemperatureName, ": shares must not be below 0 and have sums of 1");
}

}  // namespace

const char* name_of(TemperatureStatus status) {
  switch (status) {
    case TemperatureStatus::found:
      return "found";
    case TemperatureStatus::unbounded:
      return "unbounded";
    case TemperatureStatus::at_chance:
      return "at_chance";
    case TemperatureStatus::flat:
      return "flat";
  }
  return "";
}

FittedTemperature fit_temperature(const torch::Tensor& logits, const torch::Tensor& labels,
                                  const TemperatureScalingOptions& options) {
  at::NoGradGuard no_grad;
  check_loss_arguments(kTemperatureName, logits, labels, torch::ones({1}));
  check_logits(logits);
  const auto targets = labels.to(torch::kCPU, torch::kInt64).unsqueeze(1);
  return fit(
      Likelihood(logits,
                 [&](const torch::Tensor& rows, int64_t first) {
                   return rows.gather(1, targets.slice(0, first, first + rows.size(0))).squeeze(1);
                 }),
      options);
}

FittedTemperature fit_temperature_to_probabilities(const torch::Tensor& logits,
                                                   const torch::Tensor& probabilities,
                                                   const TemperatureScalingOptions& options) {
  at::NoGradGuard no_grad;
  check_probabilities(logits, probabilities);
  check_logits(logits);
  return fit(Likelihood(logits,
                        [&](const torch::Tensor& rows, int64_t first) {
                          const auto own = probabilities.slice(0, first, first + rows.size(0))
                                               .to(torch::kCPU, torch::kFloat64);
                          return (rows * own).sum(1) / own.sum(1);
                        }),
             options);
}

}  // namespace kelvin
