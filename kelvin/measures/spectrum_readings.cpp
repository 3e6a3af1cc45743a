#include "kelvin/measures/spectrum_readings.h"

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/numerics/spectrum.h"
#include "kelvin/ops/numerical_rank.h"

namespace kelvin {
namespace {

struct Rank {
  const char* name;
  const char* formula;
  double (*value)(const torch::Tensor&);
};

constexpr std::array<Rank, 4> kRanks = {
    {{"effective_rank", "exp(-sum p_i ln p_i), p_i = sigma_i / sum sigma", effective_rank},
     {"rankme", "exp(-sum p_i ln p_i), p_i = sigma_i / sum sigma + 1e-7", rankme},
     {"stable_rank", "sum sigma_i^2 / sigma_1^2", stable_rank},
     {"participation_ratio", "(sum sigma_i^2)^2 / sum sigma_i^4", participation_ratio}}};

}  // namespace

void check_gamma(const Settings& settings, double gamma) {
  check(gamma > 0 && gamma < 1, settings.full_name("gamma"), ": must be in (0, 1), got ", gamma);
}

std::vector<double> reported_gammas(double gamma) {
  std::vector<double> gammas = {gamma};
  for (const double other : {1e-2, 1e-3, 1e-4}) {
    if (other != gamma) gammas.push_back(other);
  }
  return gammas;
}

torch::Tensor finite_logits(const Record& record, const char* measure) {
  const auto logits = record.logits.to(torch::kFloat64);
  check(torch::isfinite(logits).all().item<bool>(), measure,
        ": logits must be finite, got a NaN or an infinity");
  return logits;
}

Readings rank_readings(const torch::Tensor& singular_values, const Reading& like,
                       const std::string& prefix) {
  check(singular_values.dim() == 1 && singular_values.size(0) > 0,
        "rank_readings: needs a list of singular values, got ", singular_values.sizes());
  check(torch::isfinite(singular_values).all().item<bool>(),
        "rank_readings: singular values must be finite, got a NaN or an infinity");
  if (singular_values.max().item<double>() <= 0) return {};
  Readings readings;
  for (const auto& rank : kRanks) {
    auto reading = like;
    reading.name = prefix + rank.name;
    reading.value = rank.value(singular_values);
    reading.definition["formula"] = rank.formula;
    readings.push_back(std::move(reading));
  }
  return readings;
}

namespace {

// A sketch tells ranks up to this fraction of its size, and thresholds down to this multiple of
// what the tail adds to every eigenvalue.
constexpr int64_t kShareOfSize = 4;
constexpr double kOverTail = 2;

constexpr const char* kCorrection =
    "what the projection of the tail adds to large eigenvalues is taken away";

int64_t largest_rank(const LayerValues& values) {
  const auto features = values.is_sketched ? values.features : values.width;
  return std::min(values.samples - 1, features);
}

// Centring takes one of as many singular values as there are samples: as published, RankMe counts
// it among those that it adds 1e-7 to.
torch::Tensor with_lost_value(const LayerValues& values) {
  const auto& known = values.values.projected;
  const auto lost = std::min(values.samples, values.width) - known.size(0);
  return lost > 0 ? torch::cat({known, torch::zeros({lost}, known.options())}) : known;
}

double hashed_width(const LayerValues& values) {
  return static_cast<double>(values.width - values.anchors);
}

std::string precision_of(const LayerValues& values) {
  if (!values.is_sketched) return "float32 forward, float64 covariance";
  const std::string rest = "float32 forward, projection and products, float64 spectrum";
  return values.has_rounded_anchors ? rest + "; bfloat16 products with anchors" : rest;
}

Definition definition_of(const LayerValues& values) {
  Definition result = {{"matrix", "output of the layer, samples x features"},
                       {"tap", "after normalisation, residual add and activation"},
                       {"centring", "each feature's mean over the samples removed"},
                       {"features", values.features},
                       {"samples", values.samples},
                       {"protocol", values.protocol},
                       {"precision", precision_of(values)}};
  if (values.is_sketched) {
    result["sketch"] = values.width;
    result["anchors"] = values.anchors;
    // Relative standard error of a singular value whose direction is not anchored; what the tail
    // adds comes on top.
    result["sketch_error"] = std::sqrt(0.5 / hashed_width(values));
  } else if (values.width < values.features) {
    result["features_used"] = values.width;
  }
  return result;
}

Reading rank_reading(const LayerValues& values, double gamma) {
  auto meaning = definition_of(values);
  meaning["matrix"] = "covariance of the layer's output, feature x feature";
  meaning["gamma"] = gamma;
  meaning["threshold"] = "gamma * largest eigenvalue";
  meaning["upper_bound"] = largest_rank(values);
  if (values.is_sketched) {
    const auto bounds = rank_bounds(values, gamma);
    meaning["rank_bounds"] = {bounds.low, bounds.high};
    meaning["is_reliable"] = bounds.is_reliable;
  }
  return {.name = "covariance_rank",
          .value = static_cast<double>(covariance_rank(values, gamma)),
          .layer = values.layer,
          .split = "test",
          .definition = meaning};
}

}  // namespace

int64_t covariance_rank(const LayerValues& values, double gamma) {
  return numerical_rank(values.values.projected, std::sqrt(gamma));
}

// A random map to k numbers changes variances of what has rank r by factors between
// (1 - sqrt(r / k))^2 and (1 + sqrt(r / k))^2, and adds the variance of what comes after an
// eigenvalue, over k, to it.
RankBounds rank_bounds(const LayerValues& values, double gamma) {
  const auto rank = covariance_rank(values, gamma);
  if (!values.is_sketched || rank == 0) return {.low = rank, .high = rank};
  const auto eigenvalues = values.values.projected.square();
  const auto after = eigenvalues.sum() - eigenvalues.cumsum(0);
  const auto added = after / hashed_width(values);
  const double largest = eigenvalues[0].item<double>();
  const double change = std::sqrt(static_cast<double>(rank) / hashed_width(values));
  const double higher = gamma * std::pow(1 + change, 2) * largest;
  const double lower = gamma * std::pow(1 - std::min(change, 1.0), 2) * largest;
  RankBounds bounds;
  bounds.low = (eigenvalues - added > higher).sum().item<int64_t>();
  bounds.is_reliable = kShareOfSize * rank <= values.width &&
                       kOverTail * added[rank - 1].item<double>() <= gamma * largest;
  bounds.high =
      bounds.is_reliable ? (eigenvalues > lower).sum().item<int64_t>() : largest_rank(values);
  return bounds;
}

Readings spectrum_readings(const LayerValues& values, double gamma, int64_t top) {
  Readings readings;
  for (const double each : reported_gammas(gamma)) readings.push_back(rank_reading(values, each));
  const Reading like{
      .name = "", .layer = values.layer, .split = "test", .definition = definition_of(values)};
  // A thousand times finer in variance, which is below what a sketch can tell.
  if (!values.is_sketched) {
    auto numerical = like;
    numerical.name = "numerical_rank";
    numerical.value = static_cast<double>(numerical_rank(values.values.projected, gamma));
    numerical.definition["gamma"] = gamma;
    numerical.definition["threshold"] = "gamma * sigma_1";
    numerical.definition["upper_bound"] = largest_rank(values);
    readings.push_back(numerical);
  }
  auto bounded = like;
  bounded.definition["upper_bound"] = largest_rank(values);
  for (auto& reading : rank_readings(with_lost_value(values), bounded)) {
    readings.push_back(std::move(reading));
  }
  const auto& singular_values = values.values.corrected;
  for (int64_t i = 0; i < std::min(top, singular_values.size(0)); ++i) {
    auto value = like;
    value.name = "singular_value";
    value.value = singular_values[i].item<double>();
    if (values.is_sketched) value.definition["correction"] = kCorrection;
    value.index = i;
    readings.push_back(value);
  }
  return readings;
}

}  // namespace kelvin
