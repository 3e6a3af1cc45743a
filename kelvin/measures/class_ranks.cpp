#include "kelvin/measures/class_ranks.h"

#include <torch/types.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/ops/numerical_rank.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

constexpr int64_t kLeastSamples = 2;  // of a class that has a covariance

// Of the samples' covariance, but for a factor.
int64_t covariance_rank(const torch::Tensor& rows, double gamma) {
  const auto doubles = rows.to(torch::kFloat64);
  const auto centred = doubles - doubles.mean(0, /*keepdim=*/true);
  // The smaller of the two products has all eigenvalues above 0.
  const auto product =
      centred.size(0) < centred.size(1) ? centred.matmul(centred.t()) : centred.t().matmul(centred);
  return numerical_rank(torch::linalg_eigvalsh(product).flip(0).clamp_min(0), gamma);
}

int64_t upper_bound(const ClassRanks::Layer& layer, int64_t size) {
  return std::min(size - 1, layer.width);
}

Definition definition_of(const ClassRanks& ranks, const ClassRanks::Layer& layer) {
  Definition definition = {{"matrix", "covariance of the features of one class"},
                           {"centring", "mean of the class"},
                           {"gamma", ranks.gamma},
                           {"threshold", "gamma * lambda_1 of the class"},
                           {"which", "a fixed random sample of the test split"},
                           {"features", layer.features},
                           {"precision", "float32 forward, float64 eigenvalues"}};
  if (layer.width < layer.features) definition["projected_to"] = layer.width;
  return definition;
}

Reading mean_reading(const ClassRanks& ranks, const ClassRanks::Layer& layer) {
  double sum = 0;
  double bounds = 0;
  int64_t samples = 0;
  int64_t classes = 0;
  for (size_t i = 0; i < ranks.sizes.size(); ++i) {
    const auto size = ranks.sizes[i];
    if (size < kLeastSamples) continue;
    sum += layer.ranks[static_cast<int64_t>(i)].item<double>();
    bounds += static_cast<double>(upper_bound(layer, size));
    samples += size;
    ++classes;
  }
  const auto count = static_cast<double>(classes);
  auto definition = definition_of(ranks, layer);
  definition["mean_over"] = "classes with at least 2 samples";
  definition["classes"] = classes;
  definition["samples"] = samples;
  definition["samples_per_class"] = static_cast<double>(samples) / count;
  definition["upper_bound"] = bounds / count;
  return {.name = "class_rank",
          .value = sum / count,
          .layer = layer.name,
          .split = "test",
          .definition = definition};
}

}  // namespace

ClassRanks class_ranks(const SketchedSample& sample, int64_t classes, double gamma) {
  check(gamma > 0 && gamma < 1, "class_ranks: gamma must be in (0, 1), got ", gamma);
  const auto labels = sample.labels();
  ClassRanks found{.layers = {}, .sizes = {}, .gamma = gamma};
  std::vector<torch::Tensor> members;
  for (int64_t label = 0; label < classes; ++label) {
    members.push_back((labels == label).nonzero().flatten());
    found.sizes.push_back(members.back().size(0));
  }
  found.layers.resize(sample.layers().size());
  parallel_for_tasks(static_cast<int64_t>(found.layers.size()), [&](int64_t place) {
    const auto& layer = sample.layers()[static_cast<size_t>(place)];
    const auto rows = layer.rows();
    auto ranks = torch::zeros({classes}, torch::kFloat64);
    for (size_t i = 0; i < members.size(); ++i) {
      if (found.sizes[i] < kLeastSamples) continue;
      ranks[static_cast<int64_t>(i)] =
          static_cast<double>(covariance_rank(rows.index_select(0, members[i]), gamma));
    }
    found.layers[static_cast<size_t>(place)] = {.name = layer.name,
                                                .features = layer.sketch.dims(),
                                                .width = layer.sketch.width(),
                                                .ranks = ranks};
  });
  return found;
}

Readings class_rank_readings(const ClassRanks& ranks) {
  Readings readings;
  if (std::none_of(ranks.sizes.begin(), ranks.sizes.end(),
                   [](int64_t size) { return size >= kLeastSamples; })) {
    return readings;
  }
  for (const auto& layer : ranks.layers) readings.push_back(mean_reading(ranks, layer));
  for (const auto& layer : ranks.layers) {
    for (size_t i = 0; i < ranks.sizes.size(); ++i) {
      if (ranks.sizes[i] < kLeastSamples) continue;
      auto definition = definition_of(ranks, layer);
      definition["samples"] = ranks.sizes[i];
      definition["upper_bound"] = upper_bound(layer, ranks.sizes[i]);
      const auto label = static_cast<int64_t>(i);
      readings.push_back({.name = "class_rank",
                          .value = layer.ranks[label].item<double>(),
                          .layer = layer.name,
                          .split = "test",
                          .index = label,
                          .definition = definition});
    }
  }
  return readings;
}

}  // namespace kelvin
