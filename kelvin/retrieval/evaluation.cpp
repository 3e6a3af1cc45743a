#include "kelvin/retrieval/evaluation.h"

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/numerics/dispersion.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

constexpr int64_t kShownItems = 16;

// Sets of one block: 16 384 items of 128 numbers each are 8 MiB.
int64_t sets_of_block(int64_t size) {
  constexpr int64_t kItemsOfBlock = 16384;
  return std::max<int64_t>(1, kItemsOfBlock / size);
}

double sum_over(const torch::Tensor& numbers) {
  return numbers.sum(torch::kFloat64).item<double>();
}

// Of weights over their sum; a row of nothing has none.
torch::Tensor weight_entropies(const torch::Tensor& weights) {
  const auto shares = weights.to(torch::kFloat64) /
                      weights.sum(1, /*keepdim=*/true, torch::kFloat64).clamp_min(1e-300);
  return -torch::xlogy(shares, shares).sum(1);
}

torch::Tensor places_by_priority(const RetrievalSets& sets) {
  const auto count = std::min(kShownItems, sets.priorities.size(1));
  return std::get<1>(sets.priorities.topk(count, 1, /*largest=*/true, /*sorted=*/true));
}

// Sums over the sets of a block.
struct BlockSums {
  std::vector<RetrievalQuality> qualities = {};
  std::vector<torch::Tensor> heat = {};
  double spread = 0;
  double largest_spread = 0;
  double spread_bound = 0;
  double most_of_spread_bound = 0;
  int64_t violations = 0;
};

// How many sets have softmax weights that the spread of their scores does not allow.
int64_t beyond_bounds(const torch::Tensor& scores, const torch::Tensor& spreads) {
  constexpr double kRounding = 1e-9;
  const auto weights = torch::softmax(scores.to(torch::kFloat64), 1);
  const auto n = static_cast<double>(scores.size(1));
  int64_t count = 0;
  for (int64_t i = 0; i < scores.size(0); ++i) {
    const auto bounds = sharp_bounds(n, spreads[i].item<double>());
    const bool is_within = weights[i].min().item<double>() >= bounds.low * (1 - kRounding) &&
                           weights[i].max().item<double>() <= bounds.high * (1 + kRounding);
    if (!is_within) ++count;
  }
  return count;
}

void add_shown(BlockSums& sums, const RetrievalNetwork& network, const torch::Tensor& hidden,
               const RetrievalSets& sets, const torch::Tensor& spreads, int64_t shown) {
  RetrievalSets first = sets;
  for (auto* tensor :
       {&first.priorities, &first.classes, &first.queries, &first.sizes, &first.labels}) {
    *tensor = tensor->narrow(0, 0, shown);
  }
  const auto bounds = network.score_spread_bounds(hidden.narrow(0, 0, shown), first);
  const auto part = spreads.narrow(0, 0, shown).to(torch::kFloat64) / bounds;
  sums.spread_bound += sum_over(bounds);
  sums.most_of_spread_bound = std::max(sums.most_of_spread_bound, part.max().item<double>());
  sums.violations += (part > 1).sum().item<int64_t>();
}

BlockSums sums_of_block(const RetrievalNetwork& network, const std::vector<NamedMap>& maps,
                        const RetrievalSets& sets, int64_t shown) {
  BlockSums sums;
  const auto hidden = network.hidden(sets);
  const auto scores = network.scores(hidden, sets);
  const auto spreads = scores.amax(1) - scores.amin(1);
  sums.spread = sum_over(spreads);
  sums.largest_spread = spreads.max().item<double>();
  sums.violations = beyond_bounds(scores, spreads);
  if (shown > 0) add_shown(sums, network, hidden, sets, spreads, shown);
  const auto places = places_by_priority(sets);
  for (const auto& map : maps) {
    const auto weights = map.map(scores);
    const auto answers = network.logits(hidden, weights).argmax(1);
    const auto of_highest = weights.gather(1, places);
    sums.qualities.push_back({.accuracy = sum_over(answers == sets.labels),
                              .entropy = sum_over(weight_entropies(weights)),
                              .top_weight = sum_over(weights.amax(1)),
                              .right_weight = sum_over(of_highest.select(1, 0))});
    sums.heat.push_back(of_highest.narrow(0, 0, shown));
  }
  return sums;
}

void check_evaluation(const RetrievalEvaluation& options) {
  check(options.size >= 1 && options.size <= 1 << 20,
        "retrieval evaluation: sizes must be from 1 to 1048576, got ", options.size);
  check(options.sets >= 1, "retrieval evaluation: needs at least one set, got ", options.sets);
  check(options.shown >= 0, "retrieval evaluation: the sets shown must not be below 0, got ",
        options.shown);
}

}  // namespace

int64_t block_count(const RetrievalEvaluation& options) {
  const auto each = sets_of_block(options.size);
  return (options.sets + each - 1) / each;
}

void for_set_blocks(const RetrievalEvaluation& options, int64_t classes,
                    const std::function<void(int64_t, const RetrievalSets&)>& work) {
  const auto each = sets_of_block(options.size);
  const auto root = derive_seed(options.seed, "size " + std::to_string(options.size));
  parallel_for_tasks(block_count(options), [&](int64_t block) {
    const auto count = std::min(each, options.sets - block * each);
    work(
        block,
        draw_sets({.count = count, .least = options.size, .most = options.size, .classes = classes},
                  derive_seed(root, std::to_string(block))));
  });
}

RetrievalMeasured evaluate_retrieval(const RetrievalNetwork& network,
                                     const std::vector<NamedMap>& maps,
                                     const RetrievalEvaluation& options) {
  check_evaluation(options);
  check(!maps.empty(), "retrieval evaluation: needs at least one map");
  const torch::NoGradGuard no_grad;
  std::vector<BlockSums> blocks(static_cast<size_t>(block_count(options)));
  const auto each = sets_of_block(options.size);
  for_set_blocks(options, network.shape().classes, [&](int64_t block, const RetrievalSets& sets) {
    const auto count = sets.priorities.size(0);
    const auto shown = std::clamp<int64_t>(options.shown - block * each, 0, count);
    blocks[static_cast<size_t>(block)] = sums_of_block(network, maps, sets, shown);
  });

  RetrievalMeasured measured;
  measured.qualities.resize(maps.size());
  const auto sets = static_cast<double>(options.sets);
  for (const auto& block : blocks) {
    measured.spread += block.spread / sets;
    measured.largest_spread = std::max(measured.largest_spread, block.largest_spread);
    measured.spread_bound += block.spread_bound;
    measured.most_of_spread_bound =
        std::max(measured.most_of_spread_bound, block.most_of_spread_bound);
    measured.violations += block.violations;
  }
  const auto shown = std::min(options.shown, options.sets);
  measured.spread_bound /= static_cast<double>(std::max<int64_t>(1, shown));
  for (size_t m = 0; m < maps.size(); ++m) {
    auto& quality = measured.qualities[m];
    std::vector<torch::Tensor> heat;
    for (const auto& block : blocks) {
      quality.accuracy += block.qualities[m].accuracy / sets;
      quality.entropy += block.qualities[m].entropy / sets;
      quality.top_weight += block.qualities[m].top_weight / sets;
      quality.right_weight += block.qualities[m].right_weight / sets;
      heat.push_back(block.heat[m]);
    }
    quality.heat = torch::cat(heat);
  }
  return measured;
}

}  // namespace kelvin
