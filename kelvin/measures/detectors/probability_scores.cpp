#include "kelvin/measures/detectors/probability_scores.h"

#include <limits>
#include <utility>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

// -log p of the winner: log(1 + the others' odds).
torch::Tensor log_total(const ClassOdds& odds) { return odds.log_others.exp().log1p(); }

}  // namespace

ClassOdds class_odds(const torch::Tensor& logits, double temperature) {
  check(logits.dim() == 2 && logits.size(1) > 0,
        "class_odds: logits must be [samples, classes] with at least one class, got ",
        logits.sizes());
  const auto [largest, winner] = logits.max(1, /*keepdim=*/true);
  // The maximum goes first and the division second: logits / T alone may overflow at small T.
  auto logarithms = (logits - largest) / temperature;
  // What the winner has is 0, and NaN if its logit is no number: then all of the row becomes NaN.
  const auto of_winner = logarithms.gather(1, winner);
  auto log_others =
      logarithms.scatter(1, winner, -std::numeric_limits<double>::infinity()).logsumexp(1, true) +
      of_winner;
  return {.logarithms = std::move(logarithms), .log_others = std::move(log_others)};
}

torch::Tensor log_probabilities(const ClassOdds& odds) { return odds.logarithms - log_total(odds); }

torch::Tensor log_largest_probability(const torch::Tensor& logits, double temperature) {
  return -log_total(class_odds(logits, temperature)).squeeze(1);
}

torch::Tensor entropy(const ClassOdds& odds) {
  // sum p * -log p, as -log p = log total - log odds: no two terms cancel, so none has to be large
  // for the sum to be precise.
  const auto probabilities = log_probabilities(odds).exp();
  // A class with a logit of minus infinity adds 0, not 0 * infinity.
  const auto spread = torch::where(probabilities > 0, probabilities * -odds.logarithms,
                                   torch::zeros_like(probabilities));
  return log_total(odds).squeeze(1) + spread.sum(1);
}

torch::Tensor energy(const torch::Tensor& logits, double temperature) {
  return logits.amax(1) + temperature * log_total(class_odds(logits, temperature)).squeeze(1);
}

torch::Tensor recomputed_logits(const Record& record, const torch::Tensor& features) {
  return features.matmul(record.weight.t()) + record.bias;
}

}  // namespace kelvin
