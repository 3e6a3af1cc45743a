#include "kelvin/experiment/tasks/theory_prop31.h"

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/experiment/evaluate/dump.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/experiment/evaluate/trained_network.h"
#include "kelvin/numerics/post_softmax.h"
#include "kelvin/numerics/singular_gap.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

constexpr int64_t kMostDrawnRank = 5;
constexpr int kLeastDecade = -2;  // of the scale of random matrices
constexpr int kDecades = 5;
// Singular values are computed to some 1e-15 of the largest, which is at most sqrt(64).
constexpr double kTolerance = 1e-12;

// A number in [0, 1) of a stream; the draws must not depend on the order in which they are made.
double uniform_draw(uint64_t seed, const char* stream) {
  constexpr double kTwoTo53 = 9007199254740992.0;
  return static_cast<double>(derive_seed(seed, stream) >> 11U) / kTwoTo53;
}

struct DrawnGap {
  int decade = 0;
  SingularGap of = {};
};

DrawnGap drawn_gap(const SingularGapRequest& request, int64_t index) {
  const auto seed = derive_seed(static_cast<uint64_t>(request.seed), std::to_string(index));
  const auto sizes = static_cast<double>(request.most_size - request.least_size + 1);
  const auto n = request.least_size + static_cast<int64_t>(sizes * uniform_draw(seed, "size"));
  const auto ranks = static_cast<double>(std::min(kMostDrawnRank, n));
  const auto k = 1 + static_cast<int64_t>(ranks * uniform_draw(seed, "rank"));
  const double decades = kDecades * uniform_draw(seed, "scale");
  const auto matrix = low_rank_matrix(n, k, derive_seed(seed, "matrix"));
  return {.decade = static_cast<int>(decades),
          .of = singular_gap(column_softmax(std::pow(10.0, kLeastDecade + decades) * matrix))};
}

void add_gap(Readings& readings, const SingularGap& gap, const Definition& definition,
             const std::string& split = "") {
  const auto add = [&](const char* name, double value) {
    readings.push_back({.name = name, .value = value, .split = split, .definition = definition});
  };
  add("singular_gap", gap.gap());
  add("singular_gap_bound", gap.bound);
  add("column_similarity", gap.similarity);
}

void add_decades(Readings& readings, const std::vector<DrawnGap>& drawn,
                 const Definition& definition) {
  for (int decade = 0; decade < kDecades; ++decade) {
    SingularGap sums;
    int64_t count = 0;
    for (const auto& each : drawn) {
      if (each.decade != decade) continue;
      ++count;
      sums.largest += each.of.gap();
      sums.similarity += each.of.similarity;
      sums.bound += each.of.bound;
    }
    if (count == 0) continue;
    for (double* sum : {&sums.largest, &sums.similarity, &sums.bound}) {
      *sum /= static_cast<double>(count);
    }
    auto meaning = definition;
    meaning["statistic"] = "mean";
    meaning["matrices"] = count;
    meaning["scale_from"] = std::pow(10.0, kLeastDecade + decade);
    meaning["scale_to"] = std::pow(10.0, kLeastDecade + decade + 1);
    add_gap(readings, sums, meaning);
  }
}

void add_random(Readings& readings, const SingularGapRequest& request, const RunContext& context) {
  constexpr int64_t kTurn = 500;
  std::vector<DrawnGap> drawn(static_cast<size_t>(request.matrices));
  for (int64_t begin = 0; begin < request.matrices; begin += kTurn) {
    check(!context.should_stop(), "stopped after ", begin, " matrices; nothing is shown");
    const auto end = std::min(begin + kTurn, request.matrices);
    parallel_for_tasks(end - begin, [&](int64_t i) {
      drawn[static_cast<size_t>(begin + i)] = drawn_gap(request, begin + i);
    });
    context.report_progress({.phase = "matrices", .done = end, .total = request.matrices});
  }
  const Definition definition = {
      {"matrix", "softmax(c M) by columns, M = A B^T, entries of A and B U(-1, 1)"},
      {"matrices", request.matrices},
      {"sizes", {request.least_size, request.most_size}},
      {"ranks", {1, kMostDrawnRank}},
      {"scales", {std::pow(10.0, kLeastDecade), std::pow(10.0, kLeastDecade + kDecades)}},
      {"bound", "sqrt(1 + r) - sqrt(max(1 / rows - r, 0))"},
      {"tolerance", kTolerance},
      {"precision", "float64"},
      {"seed", request.seed}};
  const auto slack = [](const DrawnGap& a) { return a.of.slack(); };
  const auto violations = std::count_if(drawn.begin(), drawn.end(), [&](const DrawnGap& each) {
    return each.of.gap() < -kTolerance || slack(each) < -kTolerance;
  });
  readings.push_back({.name = "singular_gap_violations",
                      .value = static_cast<double>(violations),
                      .definition = definition});
  auto meaning = definition;
  meaning["statistic"] = "smallest of the bound less the gap";
  const auto least =
      std::min_element(drawn.begin(), drawn.end(),
                       [&](const auto& a, const auto& b) { return slack(a) < slack(b); });
  readings.push_back({.name = "singular_gap_slack", .value = slack(*least), .definition = meaning});
  add_decades(readings, drawn, definition);
}

// Where the bound is met, and where it is as far from the gap as r = 0 lets it be.
void add_extremes(Readings& readings) {
  constexpr std::array<int64_t, 3> kSizes = {2, 8, 64};
  for (const auto n : kSizes) {
    auto same = torch::zeros({n, n}, torch::kFloat64);
    same[0].fill_(1);
    const auto permutation = torch::eye(n, torch::kFloat64).roll(1, 0);
    const auto add = [&](const char* name, const char* matrix, const torch::Tensor& columns) {
      add_gap(readings, singular_gap(columns),
              {{"case", name}, {"matrix", matrix}, {"n", n}, {"precision", "float64"}});
    };
    add("tight", "all columns the same one-hot vector", same);
    add("loose", "a permutation", permutation);
  }
}

struct GivenLogits {
  torch::Tensor logits;  // [samples, classes]
  double temperature = 1;
  std::string split = {};
};

GivenLogits of_run(const SingularGapRequest& request, const RunContext& context) {
  const auto network = open_run(request.run, request.settings, context);
  std::vector<torch::Tensor> logits;
  extract(*network.model, network.data.own, network.data.own, {},
          [&](const Record& record) { logits.push_back(record.logits); });
  return {.logits = torch::cat(logits),
          .temperature = network.settings.context().temperature,
          .split = "test"};
}

GivenLogits of_dump(const std::filesystem::path& npz) {
  const auto dump = read_dump(npz, {.needs_labels = false, .with_classifier = false});
  return {.logits = dump.record.logits, .temperature = dump.temperature};
}

void add_given(Readings& readings, const GivenLogits& given, int64_t samples) {
  const auto taken = samples > 0 ? std::min(samples, given.logits.size(0)) : given.logits.size(0);
  const auto logits = given.logits.narrow(0, 0, taken).to(torch::kFloat64);
  check(torch::isfinite(logits).all().item<bool>(), "theory prop31: logits must be finite");
  add_gap(readings, singular_gap(column_softmax(logits.t() / given.temperature)),
          {{"matrix", "softmax(M / T) (class x sample)"},
           {"temperature", given.temperature},
           {"samples", taken},
           {"bound", "sqrt(1 + r) - sqrt(max(1 / classes - r, 0))"},
           {"precision", "float32 logits, float64 after that"}},
          given.split);
}

void check_prop31(const SingularGapRequest& request) {
  check(request.matrices >= 1 && request.matrices <= 10'000'000,
        "theory prop31: matrices must be from 1 to 10000000, got ", request.matrices);
  check(request.least_size >= 2 && request.least_size <= request.most_size &&
            request.most_size <= 1000,
        "theory prop31: sizes must go up from at least 2 to at most 1000, got ", request.least_size,
        " to ", request.most_size);
  check(request.samples >= 0, "theory prop31: samples must not be below 0, got ", request.samples);
}

}  // namespace

Readings theory_prop31(const SingularGapRequest& request, const RunContext& context) {
  const torch::NoGradGuard no_grad;
  check_prop31(request);
  Readings readings;
  if (!request.run.empty()) {
    add_given(readings, of_run(request, context), request.samples);
  } else if (!request.dump.empty()) {
    add_given(readings, of_dump(request.dump), request.samples);
  } else {
    add_random(readings, request, context);
    add_extremes(readings);
  }
  return readings;
}

namespace {

const bool theory_prop31_registered = add_task(theory_prop31);

}  // namespace
}  // namespace kelvin
