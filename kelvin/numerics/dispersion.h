#pragma once

#include <torch/types.h>

namespace kelvin {

// What the spread of logits allows a softmax to do, after "softmax is not enough", arXiv
// 2410.01104.  The spread is the largest logit less the smallest, of `n` logits; it is divided by
// the temperature.

// Between these every weight lies.
struct WeightBounds {
  double low = 0;
  double high = 0;
};

// Lemma 2.1: exp(-spread / T) / n and exp(spread / T) / n.
WeightBounds lemma_bounds(double n, double spread, double temperature = 1);

// The best there are, met by one logit against n - 1 equal ones: 1 / (1 + (n - 1) exp(spread / T))
// and 1 / (1 + (n - 1) exp(-spread / T)).
WeightBounds sharp_bounds(double n, double spread, double temperature = 1);

// Entropy in nats is at least minus the logarithm of the largest weight there can be.
double least_entropy(double n, double spread, double temperature = 1);

// The number of logits from which on no weight can be above `weight`: 1 + exp(spread / T) (1 -
// weight) / weight.  Infinite for a spread that is too large for a number.
double dispersion_length(double spread, double temperature = 1, double weight = 0.5);

// Proposition 3.1 there: logits (Q y) . (K x_i) spread by at most 2 sigma_max(Q) sigma_max(K) |y|
// max |x_i|, and by a factor that multiplies them.  `query_side` is y [..., d], `item_side` the x_i
// [..., n, d]; one bound for each y.
torch::Tensor spread_bounds(const torch::Tensor& query, const torch::Tensor& key,
                            const torch::Tensor& query_side, const torch::Tensor& item_side,
                            double factor = 1);

// The largest singular value.
double spectral_norm(const torch::Tensor& matrix);

}  // namespace kelvin
