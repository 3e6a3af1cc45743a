#include "kelvin/ops/operators.h"

#include <torch/library.h>

#include <algorithm>
#include <string>

#include "kelvin/core/check.h"
#include "kelvin/ops/adaptive_attention.h"
#include "kelvin/ops/cross_entropy.h"
#include "kelvin/ops/libtorch.h"
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

// NOLINTBEGIN(readability-function-size): parameters are those of the operators

torch::Tensor attention(const torch::Tensor& query, const torch::Tensor& key,
                        const torch::Tensor& value, double temperature, const OptionalTensor& mask,
                        bool is_causal, OptionalDouble scale, c10::ArrayRef<double> coefficients,
                        bool detach_beta, double floor, const std::string& past_the_peak,
                        double threshold) {
  AdaptiveAttentionOptions options{
      .softmax = {.floor = floor,
                  .threshold = threshold,
                  .past_the_peak =
                      past_the_peak_named("adaptive_attention: past_the_peak", past_the_peak),
                  .temperature = temperature,
                  .detach_beta = detach_beta},
      .is_causal = is_causal,
      .mask = mask.value_or(torch::Tensor())};
  auto& terms = options.softmax.coefficients;
  check(coefficients.size() == terms.size(), "adaptive_attention: coefficients must be ",
        terms.size(), " numbers, of the highest power first, got ", coefficients.size());
  std::copy(coefficients.begin(), coefficients.end(), terms.begin());
  if (scale.has_value()) {
    check(*scale > 0, "adaptive_attention: scale must be above 0, got ", *scale);
    options.scale = *scale;
  }
  return adaptive_attention(query, key, value, options);
}

// NOLINTEND(readability-function-size)

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
  library.def(
      "adaptive_attention(Tensor query, Tensor key, Tensor value, float temperature=1.0, *, "
      "Tensor? "
      "mask=None, bool is_causal=False, float? scale=None, float[] coefficients=[-0.037, 0.481, "
      "-2.3, 4.917, -1.791], bool detach_beta=False, float floor=1.0, str past_the_peak=\"fall\", "
      "float threshold=0.5) -> Tensor",
      attention);
}

}  // namespace
}  // namespace kelvin
