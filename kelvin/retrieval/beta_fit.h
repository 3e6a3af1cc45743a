#pragma once

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <vector>

#include "kelvin/retrieval/evaluation.h"

namespace kelvin {

// How the polynomial of an adaptive temperature is made for a head of one's own: of each set the
// inverse temperature beta at which softmax(beta scores) gives the right answer the highest
// probability, and then beta as a polynomial in the entropy of softmax(scores).

struct BetaRange {
  double least = 0.25;
  double most = 10;
};

struct BestBetas {
  torch::Tensor entropies = {};  // [sets], float64, in nats
  torch::Tensor betas = {};      // [sets], float64
  // Sets whose best beta is at an end of the range: the probability still rises there.
  int64_t at_least = 0;
  int64_t at_most = 0;
};

BestBetas best_betas(const RetrievalNetwork& network, const RetrievalEvaluation& options,
                     const BetaRange& range = {});

// Of degree 4 by least squares, the highest power first, as AdaptiveSoftmaxOptions has them.
std::array<double, 5> fitted_beta(const torch::Tensor& entropies, const torch::Tensor& betas);

// What such a polynomial leaves unexplained of the betas: root of the mean square.
double beta_error(const std::array<double, 5>& coefficients, const torch::Tensor& entropies,
                  const torch::Tensor& betas);

}  // namespace kelvin
