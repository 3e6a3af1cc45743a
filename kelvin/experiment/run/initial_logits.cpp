#include "kelvin/experiment/run/initial_logits.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/data/batches.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/model/description.h"
#include "kelvin/model/head.h"
#include "kelvin/model/modes.h"

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

double norm_of(const std::vector<torch::Tensor>& tensors) {
  double sum = 0;
  for (const auto& tensor : tensors) sum += squared(tensor.detach());
  return std::sqrt(sum);
}

// What the last layer's parameters let expect of features of this norm.
void predict(InitialLogits& logits, const Head& head) {
  const auto& linear = head.linear();
  const auto outputs = static_cast<double>(linear->weight.size(0));
  const auto inputs = static_cast<double>(linear->weight.size(1));
  const double bias = linear->bias.defined() ? squared(linear->bias.detach()) : 0;
  const double product = logits.deviation * std::sqrt(outputs) * logits.features_norm;
  logits.bound = product * std::sqrt(inputs) + std::sqrt(bias);
  logits.expected = std::sqrt(product * product + bias);
}

}  // namespace

int64_t affordable_samples(Model& model, const ModelShape& shape) {
  constexpr int64_t kMacs = 200'000'000'000;
  const auto macs = taps_of_one_image(model, shape, {.layers = false, .attention = false}).macs();
  return std::clamp<int64_t>(kMacs / std::max<int64_t>(macs, 1), 32, 1024);
}

InitialLogits initial_logits(Model& model, const Dataset& dataset, int64_t samples,
                             bool is_pretrained) {
  check(model.head() != nullptr, "initial logits: this model does not tell what its head is");
  check(dataset.train.size() >= 2, "initial logits: dataset '", dataset.name,
        "' must have at least 2 training images, has ", dataset.train.size());
  // Not in their order: a batch of one class has other statistics than those of training.
  const auto sample = shuffled_sample(/*seed=*/0, samples, dataset.train.size());
  const auto running = squared_norms(model, dataset, sample, /*batch_statistics=*/false);
  const bool differs = !is_pretrained && has_batch_normalisation(model);
  const auto norms =
      differs ? squared_norms(model, dataset, sample, /*batch_statistics=*/true) : running;
  const auto count = static_cast<double>(sample.size());
  const auto weight = model.head()->linear()->weight.detach();
  InitialLogits logits{
      .samples = static_cast<int64_t>(sample.size()),
      .norm = std::sqrt(norms.logits / count),
      .norm_running = std::sqrt(running.logits / count),
      .features_norm = std::sqrt(norms.features / count),
      .deviation = std::sqrt(squared(weight) / static_cast<double>(weight.numel()))};
  if (!model.head()->normalises_logits()) predict(logits, *model.head());
  return logits;
}

void scale_to_norm(Model& model, const Dataset& dataset, double target, bool is_pretrained) {
  constexpr auto kWhere = "init.target_logits_norm: ";
  check(model.head() != nullptr, kWhere, "this model does not tell what its head is");
  const auto shape = dataset.shown_shape();
  const auto samples = affordable_samples(
      model, {.channels = shape.channels, .height = shape.height, .width = shape.width});
  const auto norm = initial_logits(model, dataset, samples, is_pretrained).norm;
  check(std::isfinite(norm) && norm > 0, kWhere,
        "the norm of the logits must be finite and above 0 to be scaled, is ", norm);
  // Logits are linear in what is scaled, so that they need not be measured again.
  const auto before = norm_of(model.head()->scaled_parameters());
  model.head()->scale_logits(target / norm);
  const auto reached = norm_of(model.head()->scaled_parameters()) / before * norm;
  check(std::abs(reached / target - 1) < 0.01, kWhere, "must be within what float32 can hold, got ",
        target, ", which gives ", reached);
}

}  // namespace kelvin
