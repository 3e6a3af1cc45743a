#include "kelvin/experiment/initial_logits.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/data/batches.h"
#include "kelvin/model/head.h"
#include "kelvin/model/modes.h"
#include "kelvin/representations/extract.h"

namespace kelvin {
namespace {

struct SquaredNorms {
  double logits = 0;
  double features = 0;
};

double squared(const torch::Tensor& tensor) {
  return tensor.to(torch::kFloat64).square().sum().item<double>();
}

SquaredNorms squared_norms(Model& model, const Dataset& dataset, const std::vector<int64_t>& sample,
                           bool batch_statistics) {
  SquaredNorms norms;
  extract(model, dataset, dataset,
          {.split = Split::train, .batch_statistics = batch_statistics, .indices = sample},
          [&](const Record& record) {
            norms.logits += squared(record.logits);
            norms.features += squared(record.features);
          });
  return norms;
}

}  // namespace

int64_t affordable_samples(Model& model, const ModelShape& shape) {
  constexpr int64_t kMacs = 400'000'000'000;
  torch::NoGradGuard no_grad;
  const EvaluationMode evaluation(model);
  Taps taps({.layers = false, .attention = false});
  model.forward(torch::zeros({1, shape.channels, shape.height, shape.width}), &taps);
  return std::clamp<int64_t>(kMacs / std::max<int64_t>(taps.macs(), 1), 32, 512);
}

InitialLogits initial_logits(Model& model, const Dataset& dataset, int64_t samples) {
  check(model.head() != nullptr, "initial logits: this model does not tell what its head is");
  check(dataset.train.size() >= 2, "initial logits: dataset '", dataset.name,
        "' must have at least 2 training images, has ", dataset.train.size());
  const auto sample = fixed_sample(/*seed=*/0, samples, dataset.train.size());
  const auto norms = squared_norms(model, dataset, sample, /*batch_statistics=*/true);
  const auto running = squared_norms(model, dataset, sample, /*batch_statistics=*/false);
  const auto count = static_cast<double>(sample.size());
  const auto weight = model.head()->linear()->weight.detach();
  const auto weight_norm = std::sqrt(squared(weight));
  const auto features_norm = std::sqrt(norms.features / count);
  return {.samples = static_cast<int64_t>(sample.size()),
          .norm = std::sqrt(norms.logits / count),
          .norm_running = std::sqrt(running.logits / count),
          .features_norm = features_norm,
          .deviation = weight_norm / std::sqrt(static_cast<double>(weight.numel())),
          .bound = weight_norm * features_norm,
          .expected = weight_norm * features_norm / std::sqrt(static_cast<double>(weight.size(1)))};
}

void scale_to_norm(Model& model, const Dataset& dataset, double target) {
  check(model.head() != nullptr,
        "init.target_logits_norm: this model does not tell what its head is");
  const auto shape = dataset.shown_shape();
  const auto samples = affordable_samples(
      model, {.channels = shape.channels, .height = shape.height, .width = shape.width});
  const auto norm = initial_logits(model, dataset, samples).norm;
  check(std::isfinite(norm) && norm > 0,
        "init.target_logits_norm: the norm of the logits must be "
        "finite and above 0 to be scaled, is ",
        norm);
  model.head()->scale_logits(target / norm);
}

}  // namespace kelvin
