#pragma once

#include <torch/types.h>

#include "kelvin/model/record.h"

namespace kelvin {

// softmax(M / T) of each row, in parts that stay precise where one class is all but certain: there
// p of this class rounds to 1, and what is left for the others must not be found as 1 - p.
struct ClassOdds {
  torch::Tensor logarithms;  // [samples, classes], log(p / p of the winner), 0 for the winner
  torch::Tensor log_others;  // [samples, 1], log of the others' sum of p / p of the winner
};

// Logits [samples, classes] in float64.  A NaN or an infinite largest logit makes a row NaN.
ClassOdds class_odds(const torch::Tensor& logits, double temperature);

// [samples, classes], log softmax(M / T).
torch::Tensor log_probabilities(const ClassOdds& odds);

// [samples], the largest of them.
torch::Tensor log_largest_probability(const torch::Tensor& logits, double temperature);

// [samples], of softmax(M / T) in nats.
torch::Tensor entropy(const ClassOdds& odds);

// [samples], T logsumexp(M / T).
torch::Tensor energy(const torch::Tensor& logits, double temperature);

// [samples, classes], what the record's classifier makes of other features than the record's.
torch::Tensor recomputed_logits(const Record& record, const torch::Tensor& features);

}  // namespace kelvin
