#include "kelvin/numerics/streamed_regression.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

// Times one over the largest curvature, which for the softmax is half of that of a quadratic loss;
// that bound is far too careful where the classifier is sure of itself.
constexpr double kBoldness = 2;
constexpr double kBiasRate = 0.5;

torch::Tensor with_least_std_dev(const torch::Tensor& variance) {
  const auto varying = variance.masked_select(variance > 0);
  if (varying.numel() == 0) return torch::ones_like(variance);
  constexpr double kLeast = PreconditionedRegression::kLeastStdDev;
  return variance + kLeast * kLeast * varying.median();
}

// Features that do nothing but round.  One that is 0 may only be asleep, and does not round.
torch::Tensor dead_features(const torch::Tensor& mean, const torch::Tensor& variance) {
  const auto rounding = PreconditionedRegression::kRounding * mean.abs();
  return (variance.sqrt() <= rounding).logical_and(mean != 0);
}

// The largest eigenvalue, by power iteration, of diag(curvatures) after steps along the directions
// were shortened by their fractions.
double steepest_penalty(const torch::Tensor& curvatures, const torch::Tensor& directions,
                        const torch::Tensor& fractions) {
  constexpr int kIterations = 30;
  double steepest = 0;
  auto step = torch::ones_like(curvatures);
  for (int i = 0; i < kIterations; ++i) {
    step = step * curvatures;
    step = step - directions.t().mv(fractions * directions.mv(step));
    steepest = step.norm().item<double>();
    if (!(steepest > 0)) return 0;
    step = step / steepest;
  }
  return steepest;
}

}  // namespace

PreconditionedRegression::PreconditionedRegression(const PreconditionedOptions& options)
    : options_(options) {
  check(options.classes >= 2, "PreconditionedRegression: needs at least 2 classes, got ",
        options.classes);
  check(options.passes >= 2, "PreconditionedRegression: needs at least 2 passes, got ",
        options.passes);
  check(!options.l2.empty(), "PreconditionedRegression: needs at least one penalty");
  check(options.statistics >= 2, "PreconditionedRegression: statistics need 2 samples, got ",
        options.statistics);
  hits_.resize(options.l2.size());
}

void PreconditionedRegression::train(const Minibatch& batch) {
  at::NoGradGuard no_grad;
  if (has_begun_) {
    step(batch);
    return;
  }
  waiting_.push_back(batch);
  waiting_samples_ += batch.labels.size(0);
  if (waiting_samples_ >= options_.statistics) begin();
}

void PreconditionedRegression::begin() {
  has_begun_ = true;
  if (waiting_.empty()) return;
  std::vector<torch::Tensor> parts;
  for (const auto& batch : waiting_) parts.push_back(batch.features);
  auto rows = torch::cat(parts);
  rows = rows.narrow(0, 0, std::min(rows.size(0), options_.statistics));
  const auto dims = rows.size(1);
  check(torch::isfinite(rows).all().item<bool>(), "features must be finite");
  mean_ = rows.mean(0);
  const auto variance = (rows - mean_).square().mean(0);
  check(torch::isfinite(variance).all().item<bool>(), "features are too large for float32");
  const auto is_dead = dead_features(mean_, variance);
  variance_ = with_least_std_dev(variance.masked_fill(is_dead, 0));
  const auto std_dev = variance_.sqrt();
  step_scale_squared_ = (std_dev * std_dev.mean()).reciprocal().masked_fill(is_dead, 0);
  fit_directions((rows - mean_) * step_scale_squared_.sqrt());

  const auto candidates = static_cast<int64_t>(options_.l2.size());
  weight_ = torch::zeros({candidates * options_.classes, dims});
  velocity_ = torch::zeros_like(weight_);
  bias_ = torch::zeros({candidates * options_.classes});
  bias_velocity_ = torch::zeros_like(bias_);
  penalty_ =
      torch::tensor(options_.l2, torch::kFloat32).repeat_interleave(options_.classes).unsqueeze(1);
  const auto waiting = std::move(waiting_);
  waiting_.clear();
  for (const auto& batch : waiting) step(batch);
}

void PreconditionedRegression::fit_directions(const torch::Tensor& scaled) {
  const auto samples = scaled.size(0);
  const auto gram = scaled.matmul(scaled.t()).to(torch::kFloat64) / samples;
  auto [values, vectors] = torch::linalg_eigh(gram);
  values = values.flip(0).clamp_min(0);
  vectors = vectors.flip(1);
  // The samples cannot tell how they vary along more directions than a quarter of their number, nor
  // single precision what varies much less than the first.
  const auto telling = (values > 1e-4 * values[0]).sum().item<int64_t>();
  const auto count =
      std::max<int64_t>(0, std::min({options_.directions, samples / 4, telling - 1}));
  const auto kept = values.narrow(0, 0, count);
  const auto norms = (kept * samples).sqrt();
  const auto directions =
      (vectors.narrow(1, 0, count) / norms).t().to(torch::kFloat32).matmul(scaled);
  top_variance_ = values[count].item<double>();
  shares_ = (1 - top_variance_ / kept).to(torch::kFloat32);
  const auto taken = scaled.matmul(directions.t()).square().matmul(shares_);
  largest_norm_ = (scaled.square().sum(1) - taken).max().item<double>();
  steepest_penalty_ = steepest_penalty(variance_ * step_scale_squared_, directions, shares_);
  directions_ = directions * step_scale_squared_.sqrt();
}

void PreconditionedRegression::step(const Minibatch& batch) {
  // The mean is taken out of the scores instead of the features, which are only read.
  const auto offset = bias_ - weight_.mv(mean_);
  const auto scores = torch::addmm(offset, batch.features, weight_.t());
  if (!std::isfinite(scores.sum().item<double>())) {
    check(torch::isfinite(batch.features).all().item<bool>(), "features must be finite");
    check(false, "training diverged");
  }
  descend(residuals_of(scores, batch), batch.features);
  ++steps_;
}

// Of the mean loss in the scores; counts the hits on what is held out.
torch::Tensor PreconditionedRegression::residuals_of(const torch::Tensor& scores,
                                                     const Minibatch& batch) {
  const auto samples = batch.labels.size(0);
  const auto by_candidate = scores.view({samples, -1, options_.classes});
  auto residuals = by_candidate.softmax(2);
  const auto labels = batch.labels.view({samples, 1, 1}).expand({-1, residuals.size(1), 1});
  residuals.scatter_add_(2, labels, torch::full({1, 1, 1}, -1.F).expand_as(labels));
  auto trained = samples;
  const bool is_last = pass_ + 1 == options_.passes;
  if (batch.held_out.defined() && !is_last) {
    const auto right = (by_candidate.argmax(2) == batch.labels.unsqueeze(1))
                           .logical_and(batch.held_out.unsqueeze(1))
                           .sum(0);
    for (size_t i = 0; i < hits_.size(); ++i) {
      hits_[i] += right[static_cast<int64_t>(i)].item<int64_t>();
    }
    residuals.masked_fill_(batch.held_out.view({samples, 1, 1}), 0);
    trained -= batch.held_out.sum().item<int64_t>();
  }
  return residuals.view({samples, -1}).div_(std::max<int64_t>(trained, 1));
}

void PreconditionedRegression::descend(const torch::Tensor& residuals,
                                       const torch::Tensor& features) {
  const auto samples = static_cast<double>(features.size(0));
  const auto sums = residuals.sum(0);
  // Of the features as they are; the penalty is that of standardised ones.
  auto gradient = residuals.t().matmul(features);
  gradient.addr_(sums, mean_, 1, -1).addcmul_(weight_ * penalty_, variance_);
  // One step of the moving average of directions, without a matrix for the direction itself.
  velocity_.addmm_(gradient.matmul(directions_.t()) * shares_, directions_, kMomentum,
                   kMomentum - 1);
  velocity_.addcmul_(gradient, step_scale_squared_, 1 - kMomentum);
  const double curvature = 0.5 * (largest_norm_ + (samples - 1) * top_variance_) / samples;
  if (curvature > 0) {  // otherwise nothing can be learnt
    weight_.addcmul_(velocity_, (penalty_ * steepest_penalty_ + curvature).reciprocal(),
                     -kBoldness * decay());
  }
  bias_velocity_.mul_(kMomentum).add_(sums, 1 - kMomentum);
  bias_.sub_(bias_velocity_, kBiasRate * decay());
}

double PreconditionedRegression::decay() const {
  if (pass_ == 0) return 1;
  const auto all = static_cast<double>((options_.passes - 1) * steps_per_pass_);
  const auto done = static_cast<double>((pass_ - 1) * steps_per_pass_ + steps_);
  return 0.5 * (1 + std::cos(std::numbers::pi * std::min(1., done / all)));
}

void PreconditionedRegression::end_pass() {
  at::NoGradGuard no_grad;
  if (!has_begun_) begin();
  check(weight_.defined(), "PreconditionedRegression: nothing was shown");
  steps_per_pass_ = std::max(steps_per_pass_, steps_);
  steps_ = 0;
  ++pass_;
  if (pass_ + 1 == options_.passes) choose();
  std::fill(hits_.begin(), hits_.end(), 0);
}

// The others are not trained any further.
void PreconditionedRegression::choose() {
  const auto best = std::max_element(hits_.begin(), hits_.end());
  chosen_ = static_cast<size_t>(best - hits_.begin());
  const auto first = static_cast<int64_t>(chosen_) * options_.classes;
  for (auto* tensor : {&weight_, &velocity_, &bias_, &bias_velocity_, &penalty_}) {
    *tensor = tensor->narrow(0, first, options_.classes).clone();
  }
}

LinearClassifier PreconditionedRegression::classifier() const {
  check(pass_ >= options_.passes, "PreconditionedRegression: was shown ", pass_, " of ",
        options_.passes, " passes");
  LinearClassifier result;
  result.weight = weight_.clone();
  result.bias = bias_ - weight_.mv(mean_);
  result.iterations = pass_ * steps_per_pass_;
  return result;
}

int64_t PreconditionedRegression::memory(const PreconditionedOptions& options, int64_t dims) {
  constexpr int64_t kMinibatch = 256;
  // Weights, velocity, gradient, and one for what lies between.
  const auto rows = 4 * static_cast<int64_t>(options.l2.size()) * options.classes +
                    options.directions + options.statistics + kMinibatch + 3;
  return rows * dims * int64_t{sizeof(float)};
}

AdamRegression::AdamRegression(const AdamOptions& options) : options_(options) {
  check(options.classes >= 2, "AdamRegression: needs at least 2 classes, got ", options.classes);
}

void AdamRegression::begin(int64_t dims) {
  const double bound = 1 / std::sqrt(static_cast<double>(dims));
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(options_.seed);
  const auto parameter = [&](at::IntArrayRef shape) {
    const auto value = at::empty(shape, torch::kFloat32).uniform_(-bound, bound, generator);
    return Parameter{value, torch::zeros_like(value), torch::zeros_like(value)};
  };
  weight_ = parameter({options_.classes, dims});
  bias_ = parameter({options_.classes});
}

void AdamRegression::train(const Minibatch& batch) {
  at::NoGradGuard no_grad;
  if (!weight_.value.defined()) begin(batch.features.size(1));
  const auto scores = torch::addmm(bias_.value, batch.features, weight_.value.t());
  if (!std::isfinite(scores.sum().item<double>())) {
    check(torch::isfinite(batch.features).all().item<bool>(), "features must be finite");
    check(false, "training diverged");
  }
  auto residuals = scores.softmax(1);
  const auto labels = batch.labels.unsqueeze(1);
  residuals.scatter_add_(1, labels, torch::full({1, 1}, -1.F).expand_as(labels));
  residuals.div_(batch.labels.size(0));
  ++steps_;
  update(weight_, residuals.t().matmul(batch.features));
  update(bias_, residuals.sum(0));
}

void AdamRegression::update(Parameter& parameter, const torch::Tensor& gradient) const {
  const auto steps = static_cast<double>(steps_);
  const double first_fraction = 1 - std::pow(options_.first_decay, steps);
  const double second_share = 1 - std::pow(options_.second_decay, steps);
  parameter.first.mul_(options_.first_decay).add_(gradient, 1 - options_.first_decay);
  parameter.second.mul_(options_.second_decay)
      .addcmul_(gradient, gradient, 1 - options_.second_decay);
  const auto scale = parameter.second.sqrt().div_(std::sqrt(second_share)).add_(options_.epsilon);
  parameter.value.addcdiv_(parameter.first, scale, -options_.learning_rate / first_fraction);
}

LinearClassifier AdamRegression::classifier() const {
  check(weight_.value.defined(), "AdamRegression: nothing was shown");
  LinearClassifier result;
  result.weight = weight_.value.clone();
  result.bias = bias_.value.clone();
  result.iterations = steps_;
  return result;
}

int64_t AdamRegression::memory(const AdamOptions& options, int64_t dims) {
  return 5 * options.classes * dims * int64_t{sizeof(float)};
}

}  // namespace kelvin
