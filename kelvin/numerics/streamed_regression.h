#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "kelvin/numerics/logistic_regression.h"

namespace kelvin {

// One minibatch of a stream that is shown several times.
struct Minibatch {
  torch::Tensor features;  // [samples, dims] float32
  torch::Tensor labels;    // [samples] int64
  // [samples] bool, the same for a sample in every pass: not trained on while candidates are
  // compared.  Undefined if there are none.
  torch::Tensor held_out = {};
};

// A linear classifier of features that are never all in memory.
class StreamedRegression {
 public:
  virtual ~StreamedRegression() = default;
  virtual void train(const Minibatch& batch) = 0;
  // After all minibatches were shown once.
  virtual void end_pass() = 0;
  // After the last pass.
  virtual LinearClassifier classifier() const = 0;
  // The penalty that was chosen, if there is one.
  virtual std::optional<double> l2() const { return std::nullopt; }
};

struct PreconditionedOptions {
  int64_t classes = 0;
  int64_t passes = 2;  // at least 2
  // Penalties l2 / 2 * |W|^2 on standardised features, trained side by side until one of them is
  // chosen before the last pass, by its accuracy on what is held out.  At least one.
  std::vector<double> l2 = {};
  int64_t statistics =
      512;  // samples at the beginning that mean, standard deviation and directions are of
  int64_t directions = 64;  // of largest variance, along which steps are shortened
};

// Multinomial logistic regression by stochastic gradients, preconditioned as EigenPro does (Ma and
// Belkin, arXiv 1703.10622): along the directions in which features vary most, steps are as much
// shorter as the variance is larger than along the next one, so that they can be longer along all
// others.  Steps are taken in features over the root of their standard deviation, as in effect by
// Adam: over all of it, features that hardly ever vary count as much as any other and fit noise; as
// they are, features that vary much leave little to others.  The learning rate is constant in the
// first pass and falls as a cosine to 0 in the others.
class PreconditionedRegression : public StreamedRegression {
 public:
  // Enough for steps that overshoot; more delays all of them, and two passes have few.
  static constexpr double kMomentum = 0.5;
  // Of the median standard deviation of the features that vary, added to every one in squares: what
  // a feature hardly does in the first samples it may do later.
  static constexpr double kLeastStdDev = 0.1;
  // Of the mean of a feature: one that deviates no more, unless it is 0, does nothing but round,
  // and gets no weight.
  static constexpr double kRounding = 1e-6;

  explicit PreconditionedRegression(const PreconditionedOptions& options);

  void train(const Minibatch& batch) override;
  void end_pass() override;
  LinearClassifier classifier() const override;
  std::optional<double> l2() const override { return options_.l2[chosen_]; }

  // Bytes of a classifier of so many features while it is trained.
  static int64_t memory(const PreconditionedOptions& options, int64_t dims);

 private:
  void begin();
  void fit_directions(const torch::Tensor& scaled);
  void step(const Minibatch& batch);
  torch::Tensor residuals_of(const torch::Tensor& scores, const Minibatch& batch);
  void descend(const torch::Tensor& residuals, const torch::Tensor& features);
  double decay() const;
  void choose();

  PreconditionedOptions options_;
  std::vector<Minibatch> waiting_;  // until there are enough for statistics
  int64_t waiting_samples_ = 0;
  bool has_begun_ = false;

  torch::Tensor mean_;                // [dims]
  torch::Tensor variance_;            // [dims]
  torch::Tensor step_scale_squared_;  // [dims]; 0 for features that only round
  torch::Tensor directions_;          // [directions, dims], times the step scale
  torch::Tensor shares_;              // [directions], of the step that is taken away along each
  double top_variance_ = 0;           // along the first direction that is not shortened
  double largest_norm_ = 0;           // squared, of a sample, after shortening
  double steepest_penalty_ = 0;       // largest curvature of a penalty of 1, after shortening

  torch::Tensor weight_;    // [candidates * classes, dims], of the features as they are
  torch::Tensor bias_;      // [candidates * classes], of the centred features
  torch::Tensor velocity_;  // as weight_
  torch::Tensor bias_velocity_;
  torch::Tensor penalty_;  // [candidates * classes, 1]

  int64_t pass_ = 0;
  int64_t steps_ = 0;           // in this pass
  int64_t steps_per_pass_ = 0;  // once one is over
  size_t chosen_ = 0;
  std::vector<int64_t> hits_;  // on what is held out, of each candidate in this pass
};

struct AdamOptions {
  int64_t classes = 0;
  double learning_rate = 1e-3;
  double first_decay = 0.9;
  double second_decay = 0.999;
  double epsilon = 1e-8;
  uint64_t seed = 0;  // of the first weights, uniform within 1 / sqrt(dims)
};

// Multinomial logistic regression by Adam (arXiv 1412.6980) at a constant learning rate, on the
// features as they are, without a penalty.
class AdamRegression : public StreamedRegression {
 public:
  explicit AdamRegression(const AdamOptions& options);

  void train(const Minibatch& batch) override;
  void end_pass() override {}
  LinearClassifier classifier() const override;

  // Bytes of a classifier of so many features while it is trained.
  static int64_t memory(const AdamOptions& options, int64_t dims);

 private:
  struct Parameter {
    torch::Tensor value;
    torch::Tensor first;   // moving averages of the gradient
    torch::Tensor second;  // and of its square
  };

  void begin(int64_t dims);
  void update(Parameter& parameter, const torch::Tensor& gradient) const;

  AdamOptions options_;
  Parameter weight_;
  Parameter bias_;
  int64_t steps_ = 0;
};

}  // namespace kelvin
