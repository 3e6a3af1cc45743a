#pragma once

#include <torch/types.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kelvin/model/model.h"

namespace kelvin {

// Whether batch statistics make a difference.
bool has_batch_normalisation(const Model& model);

// Evaluation mode for as long as it lives, then the mode that was before.
class EvaluationMode {
 public:
  explicit EvaluationMode(Model& model);
  ~EvaluationMode();
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> were_training_;
};

// Evaluation mode in which batch normalisations use each batch's own statistics, as in training,
// without remembering them: what the loss sees of a network whose running statistics are not
// learned yet.
class BatchStatisticsMode {
 public:
  explicit BatchStatisticsMode(Model& model);
  ~BatchStatisticsMode();
  BatchStatisticsMode(const BatchStatisticsMode&) = delete;
  BatchStatisticsMode& operator=(const BatchStatisticsMode&) = delete;

 private:
  EvaluationMode evaluation_;
  std::vector<std::pair<torch::Tensor, torch::Tensor>> buffers_;  // each with what it held
};

// One of the two, as long as it lives.
class MeasuringMode {
 public:
  MeasuringMode(Model& model, bool uses_batch_statistics) {
    if (uses_batch_statistics) {
      batch_statistics_.emplace(model);
    } else {
      evaluation_.emplace(model);
    }
  }

 private:
  std::optional<EvaluationMode> evaluation_;
  std::optional<BatchStatisticsMode> batch_statistics_;
};

}  // namespace kelvin
