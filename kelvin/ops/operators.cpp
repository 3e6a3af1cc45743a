#include "kelvin/ops/operators.h"

#include <torch/library.h>

#include "kelvin/ops/cross_entropy.h"
#include "kelvin/ops/neco.h"
#include "kelvin/ops/numerical_rank.h"

// What torch.ops.kelvin has besides maps to the simplex (map_operator.h) and kernels, whose names
// begin with an underscore.  All are made of operators of PyTorch's and of those kernels, and so
// have gradients and meta functions.

namespace kelvin {
namespace {

torch::Tensor loss_at(const torch::Tensor& logits, const torch::Tensor& labels,
                      const torch::Tensor& temperature, double smoothing) {
  return tempered_cross_entropy(logits, labels, temperature, {.smoothing = smoothing}).loss;
}

torch::Tensor loss_at_number(const torch::Tensor& logits, const torch::Tensor& labels,
                             double temperature, double smoothing) {
  return loss_at(logits, labels, torch::scalar_tensor(temperature, torch::kFloat64), smoothing);
}

torch::Tensor neco(const torch::Tensor& features, const torch::Tensor& train_features,
                   int64_t dimensions, bool scaler, bool raw_denominator) {
  return neco_scores(features, train_features, dimensions,
                     {.scaler = scaler, .raw_denominator = raw_denominator});
}

TORCH_LIBRARY_FRAGMENT(kelvin, library) {
  // The tensor first: Python would take a tensor for a number, and its gradient would be lost.
  library.def(
      "temperature_cross_entropy.learnt(Tensor logits, Tensor labels, Tensor temperature, *, float "
      "smoothing=0.0) -> Tensor",
      loss_at);
  library.def(
      "temperature_cross_entropy(Tensor logits, Tensor labels, float temperature=1.0, *, float "
      "smoothing=0.0) -> Tensor",
      loss_at_number);
  library.def("numerical_rank(Tensor matrices, float gamma=0.001) -> Tensor", numerical_ranks);
  library.def(
      "neco(Tensor features, Tensor train_features, int dimensions, *, bool scaler=True, bool "
      "raw_denominator=False) -> Tensor",
      neco);
}

}  // namespace
}  // namespace kelvin
