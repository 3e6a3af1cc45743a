#include "kelvin/model/modes.h"

#include <torch/torch.h>

#include <algorithm>

namespace kelvin {
namespace {

bool is_batch_normalisation(const torch::nn::Module& module) {
  return module.as<torch::nn::BatchNorm2d>() != nullptr ||
         module.as<torch::nn::BatchNorm1d>() != nullptr;
}

}  // namespace

bool has_batch_normalisation(const Model& model) {
  const auto modules = model.modules(/*include_self=*/false);
  return std::any_of(modules.begin(), modules.end(),
                     [](const auto& module) { return is_batch_normalisation(*module); });
}

EvaluationMode::EvaluationMode(Model& model) {
  for (const auto& module : model.modules()) {
    were_training_.emplace_back(module, module->is_training());
  }
  model.eval();
}

EvaluationMode::~EvaluationMode() {
  // From the outermost to the innermost: train() of a module sets those inside of it.
  for (const auto& [module, was_training] : were_training_) module->train(was_training);
}

BatchStatisticsMode::BatchStatisticsMode(Model& model) : evaluation_(model) {
  for (const auto& module : model.modules()) {
    if (!is_batch_normalisation(*module)) continue;
    module->train();
    for (const auto& buffer : module->buffers()) buffers_.emplace_back(buffer, buffer.clone());
  }
}

BatchStatisticsMode::~BatchStatisticsMode() {
  torch::NoGradGuard no_grad;
  for (auto& [buffer, before] : buffers_) buffer.copy_(before);
}

}  // namespace kelvin
