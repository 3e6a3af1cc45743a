#pragma once

#include <cstdint>
#include <vector>

namespace kelvin {

// A step of an optimizer in one pass over the numbers of all its parameters, on all cores: every
// core gets the same number of them, because most parameters of a network are too small to share
// out.  The arithmetic is that of LibTorch 1.13, number by number, so bits depend neither on the
// number of threads nor on the processor's vectors.

// A parameter, its gradient and what is remembered of earlier steps.  All of the same length and in
// the same order in memory, which may be any.
template <class Scalar>
struct SteppedTensor {
  Scalar* parameter = nullptr;
  const Scalar* gradient = nullptr;
  Scalar* mean = nullptr;         // of the gradients; of SGD its momentum, null if it has none
  Scalar* mean_square = nullptr;  // likewise; of Adam
  int64_t length = 0;
  int64_t steps = 1;  // with this one; of Adam
  double learning_rate = 0;
  double decay = 0;   // times the parameter is added to the gradient
  double shrink = 1;  // the parameter is multiplied by it first
};

template <class Scalar>
using SteppedTensors = std::vector<SteppedTensor<Scalar>>;

struct SgdRule {
  double momentum = 0;
  bool nesterov = false;
  double gradient_scale = 1;  // of all gradients, to clip them
};

// With the momentum of all zeros the first step is that of LibTorch, which starts without one.
void sgd_step(const SteppedTensors<float>& tensors, const SgdRule& rule);
void sgd_step(const SteppedTensors<double>& tensors, const SgdRule& rule);

struct AdamRule {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double gradient_scale = 1;
};

void adam_step(const SteppedTensors<float>& tensors, const AdamRule& rule);
void adam_step(const SteppedTensors<double>& tensors, const AdamRule& rule);

// The sum of the squares of all gradients, in double precision and in a fixed order.
double squared_gradients(const SteppedTensors<float>& tensors);
double squared_gradients(const SteppedTensors<double>& tensors);

template <class Scalar>
struct AveragedTensor {
  Scalar* average = nullptr;
  const Scalar* newest = nullptr;
  int64_t length = 0;
};

// Moves EMAs by `fraction` of the way to the newest, as LibTorch's lerp does.
void average_step(const std::vector<AveragedTensor<float>>& tensors, double fraction);
void average_step(const std::vector<AveragedTensor<double>>& tensors, double fraction);

}  // namespace kelvin
