#pragma once

#include <optional>
#include <vector>

#include "kelvin/data/dataset.h"
#include "kelvin/experiment/compute_api.h"
#include "kelvin/experiment/run_settings.h"
#include "kelvin/runs/run_folder.h"
#include "kelvin/train/train.h"

namespace kelvin {

// Writes a line of metrics.jsonl at initialisation and after each epoch:
// accuracy, norms and ranks on one fixed sample of each split.
class EpochMetrics : public TrainObserver {
 public:
  EpochMetrics(const Dataset& dataset, const RunSettings& settings, const RunFolder& folder,
               const RunContext& context);

  void before_training(const TrainState& state) override;
  void after_epoch(const TrainState& state) override;

  // How much the norm of the logits grew since initialisation; nothing if they were 0.
  std::optional<Reading> norm_growth() const;

  // The singular values of the logits at each line, to the run's curves.npz.
  void write_curves() const;

 private:
  void observe(const TrainState& state);

  const Dataset& dataset_;
  const RunSettings& settings_;
  const RunFolder& folder_;
  const RunContext& context_;
  std::vector<int64_t> train_sample_;
  std::vector<int64_t> test_sample_;
  double start_ = 0;      // seconds
  double observing_ = 0;  // seconds spent here, which training is not charged for
  double first_norm_ = 0;
  double last_norm_ = 0;
  std::vector<double> epochs_;
  std::vector<std::vector<double>> spectra_;
};

}  // namespace kelvin
