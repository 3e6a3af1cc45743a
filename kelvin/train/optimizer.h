#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <string>
#include <vector>

#include "kelvin/model/model.h"
#include "kelvin/ops/libtorch.h"
#include "kelvin/ops/tensors.h"

namespace kelvin {

// What states of training call the logarithm of a learned temperature.
inline constexpr auto kLogTemperature = "log_temperature";

// sgd and adam add the decay of the weights to the gradient (coupled, L2); sgdw and adamw shrink
// the weights by learning rate * decay instead (decoupled, arXiv 1711.05101).
enum class OptimizerKind { sgd, sgdw, adam, adamw };

OptimizerKind optimizer_of(const std::string& name);

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::sgd;
  double momentum = 0.9;  // of sgd, sgdw
  bool nesterov = false;  // likewise
  double beta1 = 0.9;     // of adam, adamw
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-4;
  bool decays_vectors = true;           // biases and normalisations as well
  double head_learning_rate_scale = 1;  // the last layer's learning rate is multiplied by it
  double clip_norm = 0;                 // the largest norm of all gradients together; 0: any
};

// Moves the parameters of a model, and log T if it is learnt: in one pass over them, or by
// torch::optim with reference ops and where parameters lie elsewhere than in dense float32 or
// float64 tensors of the CPU.  What is remembered of earlier steps is the same for both.
class Optimizer {
 public:
  // `log_temperature` is not decayed; undefined if there is none.
  Optimizer(Model& model, const OptimizerOptions& options,
            const torch::Tensor& log_temperature = {});

  // There are none afterwards: the next ones take their place without being added to zeros.
  void zero_gradients();

  // By the gradients that are there, clipped if wanted; what has none is left alone.  Gradients are
  // of no use afterwards: only reference ops clip them in place.
  void step(double learning_rate);

  // What it remembers of earlier steps, by "parameter/what".
  NamedTensors state() const;
  // Nothing if no step was taken yet; otherwise throws unless it is of the same parameters and kind
  // of optimizer.
  void restore(const NamedTensors& state);

 private:
  struct Part {
    std::string name;
    torch::Tensor parameter;
    double decay = 0;
    double learning_rate_scale = 1;
    OptimizerStateKey key = {};  // of what LibTorch remembers
  };
  class OnePass;
  bool is_for_one_pass() const;
  void reference_step(double learning_rate);

  OptimizerOptions options_;
  std::vector<Part> parts_;  // each is a group of its own: they differ in decay and learning rate
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

}  // namespace kelvin
