#include "kelvin/language/attention_statistics.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

// Of every head and query [heads, queries], in float64.
struct QueryValues {
  torch::Tensor spread, bound, entropy, log_keys, top_weight, top_weight_bound, violations;
};

// Of one sequence.
QueryValues values_of(const torch::Tensor& scores, const torch::Tensor& weights,
                      const torch::Tensor& inputs, const std::vector<double>& factors,
                      bool is_softmax) {
  constexpr auto kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kRounding = 1e-5;  // of float32 scores and weights
  const auto n = scores.size(-1);
  const auto unseen = torch::ones({n, n}, torch::kBool).triu(1);
  const auto keys = torch::arange(1, n + 1, torch::kFloat64);
  QueryValues values;
  values.spread = (scores.masked_fill(unseen, -kInfinity).amax(-1) -
                   scores.masked_fill(unseen, kInfinity).amin(-1))
                      .to(torch::kFloat64);
  const auto lengths = inputs.to(torch::kFloat64).norm(2, -1);
  const auto longest = std::get<0>(lengths.cummax(0));
  values.bound = torch::tensor(factors, torch::kFloat64).unsqueeze(1) * (lengths * longest);
  // Not every map's weights sum to 1.
  const auto shares = weights / weights.sum(-1, /*keepdim=*/true).clamp_min(1e-30);
  values.entropy = -torch::xlogy(shares, shares).sum(-1).to(torch::kFloat64);
  values.log_keys = keys.log().expand_as(values.spread);
  values.top_weight = weights.amax(-1).to(torch::kFloat64);
  values.top_weight_bound = 1 / (1 + (keys - 1) * (-values.spread).exp());
  values.violations = values.spread > values.bound * (1 + kRounding);
  if (is_softmax) {
    values.violations =
        values.violations.logical_or(values.top_weight > values.top_weight_bound * (1 + kRounding));
  }
  return values;
}

double total_of(const torch::Tensor& numbers) {
  return numbers.sum(torch::kFloat64).item<double>();
}

void add(HeadStatistics& sums, const QueryValues& values, int64_t head, int64_t first,
         int64_t count) {
  const auto part = [&](const torch::Tensor& of_queries) {
    return of_queries[head].narrow(0, first, count);
  };
  sums.queries += static_cast<double>(count);
  sums.spread += total_of(part(values.spread));
  sums.largest_spread = std::max(sums.largest_spread, part(values.spread).max().item<double>());
  sums.spread_bound += total_of(part(values.bound));
  sums.largest_part_of_bound =
      std::max(sums.largest_part_of_bound,
               (part(values.spread) / part(values.bound).clamp_min(1e-300)).max().item<double>());
  sums.entropy += total_of(part(values.entropy));
  sums.log_keys += total_of(part(values.log_keys));
  sums.top_weight += total_of(part(values.top_weight));
  sums.top_weight_bound += total_of(part(values.top_weight_bound));
  sums.violations += total_of(part(values.violations));
}

}  // namespace

AttentionStatistics::AttentionStatistics(const Decoder& decoder, std::vector<int64_t> edges,
                                         bool is_softmax)
    : edges_(std::move(edges)), is_softmax_(is_softmax), heads_(decoder.shape().heads) {
  check(
      edges_.size() >= 2 && edges_.front() >= 1 &&
          std::adjacent_find(edges_.begin(), edges_.end(), std::greater_equal<>()) == edges_.end(),
      "attention statistics: edges must ascend from 1 or more, and be two or more");
  for (int64_t layer = 0; layer < decoder.shape().layers; ++layer) {
    factors_.push_back(decoder.spread_factors(layer));
  }
  sums_.resize(factors_.size() * static_cast<size_t>(heads_) * ranges());
}

void AttentionStatistics::update(const WatchedAttention& seen) {
  const auto& factors = factors_.at(static_cast<size_t>(seen.layer));
  for (int64_t i = 0; i < seen.scores.size(0); ++i) {
    const auto values =
        values_of(seen.scores[i], seen.weights[i], seen.inputs[i], factors, is_softmax_);
    const auto n = seen.scores.size(-1);
    for (int64_t head = 0; head < heads_; ++head) {
      for (size_t range = 0; range < ranges(); ++range) {
        const auto first = std::min(n, edges_[range] - 1);
        const auto count = std::min(n, edges_[range + 1] - 1) - first;
        if (count == 0) continue;
        const auto place = (seen.layer * heads_ + head) * static_cast<int64_t>(ranges());
        add(sums_[static_cast<size_t>(place) + range], values, head, first, count);
      }
    }
  }
}

HeadStatistics AttentionStatistics::of(int64_t layer, int64_t head, size_t range) const {
  const auto place = (layer * heads_ + head) * static_cast<int64_t>(ranges());
  auto means = sums_.at(static_cast<size_t>(place) + range);
  if (means.queries == 0) return means;
  for (auto* sum : {&means.spread, &means.spread_bound, &means.entropy, &means.log_keys,
                    &means.top_weight, &means.top_weight_bound}) {
    *sum /= means.queries;
  }
  return means;
}

}  // namespace kelvin
