#include "kelvin/experiment/tasks/theory_fig6.h"

#include <torch/torch.h>

#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/numerics/post_softmax.h"
#include "kelvin/ops/parallel_for.h"
#include "kelvin/statistics/summary.h"

namespace kelvin {
namespace {

void check_figure6(const Figure6Request& request) {
  check(request.n >= 2 && request.n <= 2000, "theory fig6: n must be from 2 to 2000, got ",
        request.n);
  check(request.most_rank >= 1 && request.most_rank <= request.n,
        "theory fig6: the ranks must be from 1 to n = ", request.n, ", got ", request.most_rank);
  check(request.draws >= 1 && request.draws <= 10'000,
        "theory fig6: draws must be from 1 to 10000, got ", request.draws);
  check(request.gamma > 0 && request.gamma < 1, "theory fig6: gamma must be in (0, 1), got ",
        request.gamma);
  for (const double scale : request.scales) {
    check(std::isfinite(scale) && scale > 0,
          "theory fig6: scales must be finite numbers above 0, got ", scale);
  }
}

std::vector<double> usual_scales() {
  constexpr int kPerDecade = 4;
  std::vector<double> scales;
  for (int i = -kPerDecade; i <= 4 * kPerDecade; ++i) {
    scales.push_back(std::pow(10.0, static_cast<double>(i) / kPerDecade));
  }
  return scales;
}

// By draw and scale, of matrices of rank k.
using Drawn = std::vector<std::vector<PostSoftmax>>;

Drawn drawn_of_rank(int64_t k, const std::vector<double>& scales, const Figure6Request& request) {
  Drawn drawn(static_cast<size_t>(request.draws));
  const auto root = derive_seed(static_cast<uint64_t>(request.seed), "fig6");
  parallel_for_tasks(request.draws, [&](int64_t draw) {
    const auto stream = "rank " + std::to_string(k) + " draw " + std::to_string(draw);
    const auto matrix = low_rank_matrix(request.n, k, derive_seed(root, stream));
    for (const double scale : scales) {
      drawn[static_cast<size_t>(draw)].push_back(post_softmax(scale * matrix, request.gamma));
    }
  });
  return drawn;
}

// The mean over draws of what `number` takes from each.
template <class Number>
Reading mean_reading(const std::string& name, const Drawn& drawn, size_t scale,
                     const Definition& definition, const Number& number) {
  std::vector<double> values;
  for (const auto& of_draw : drawn) values.push_back(number(of_draw[scale]));
  const auto summary = summarise(values);
  return {.name = name,
          .value = summary.mean,
          .interval = Interval{.low = summary.smallest, .high = summary.largest},
          .definition = definition};
}

void add_scales(Readings& readings, const Drawn& drawn, const std::vector<double>& scales,
                const Definition& definition) {
  for (size_t i = 0; i < scales.size(); ++i) {
    auto meaning = definition;
    meaning["c"] = scales[i];
    const auto add = [&](const std::string& name, const auto& number) {
      readings.push_back(mean_reading(name, drawn, i, meaning, number));
    };
    add("post_softmax_rank", [](const PostSoftmax& of) { return static_cast<double>(of.rank); });
    add("logits_norm", [](const PostSoftmax& of) { return of.norm; });
    add("column_cosine", [](const PostSoftmax& of) { return of.column_cosine; });
    add("column_top_weight", [](const PostSoftmax& of) { return of.top_weight; });
  }
  readings.push_back(mean_reading(
      "distinct_argmaxes", drawn, scales.size() - 1, definition,
      [](const PostSoftmax& of) { return static_cast<double>(of.distinct_argmaxes); }));
}

}  // namespace

Readings theory_fig6(const Figure6Request& request, const RunContext& context) {
  const torch::NoGradGuard no_grad;
  check_figure6(request);
  const auto scales = request.scales.empty() ? usual_scales() : request.scales;
  Readings readings;
  for (int64_t k = 1; k <= request.most_rank; ++k) {
    check(!context.should_stop(), "stopped before rank ", k, "; nothing is shown");
    add_scales(readings, drawn_of_rank(k, scales, request), scales,
               {{"matrix", "softmax(c M) by columns, M = A B^T, entries of A and B U(-1, 1)"},
                {"n", request.n},
                {"k", k},
                {"gamma", request.gamma},
                {"threshold", "gamma * sigma_1"},
                {"centring", "none"},
                {"precision", "float64"},
                {"draws", request.draws},
                {"seed", request.seed},
                {"interval", "smallest and largest of the draws"}});
    context.report_progress({.phase = "ranks", .done = k, .total = request.most_rank});
  }
  return readings;
}

namespace {

const bool theory_fig6_registered = add_task(theory_fig6);

}  // namespace
}  // namespace kelvin
