#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/data/dataset.h"
#include "kelvin/experiment/config/train_settings.h"
#include "kelvin/experiment/evaluate/ood_groups.h"
#include "kelvin/measures/detectors/detector.h"
#include "kelvin/measures/measure.h"
#include "kelvin/model/initialisation.h"
#include "kelvin/model/model.h"
#include "kelvin/runs/config.h"

namespace kelvin {

// What settings must be; `key` is the full name of one.

// What training computes with is float32, whose numbers are from 1e-38 to 3e38.
inline void check_float(const std::string& key, double value) {
  constexpr double kLeast = 1e-30;
  constexpr double kMost = 1e30;
  check(value == 0 || (std::abs(value) >= kLeast && std::abs(value) <= kMost), key,
        ": must be from ", kLeast, " to ", kMost, ", which float32 can hold, got ", value);
}

inline void check_above_zero(const std::string& key, double value) {
  check(std::isfinite(value) && value > 0, key, ": must be a finite number above 0, got ", value);
  check_float(key, value);
}

inline void check_not_negative(const std::string& key, double value) {
  check(std::isfinite(value) && value >= 0, key, ": must be a finite number, not below 0, got ",
        value);
  check_float(key, value);
}

// Of the softmax; gradients are of the order of 1/T, and their squares must be numbers too.
inline void check_temperature_setting(const std::string& key, double value) {
  constexpr double kLeast = 1e-12;
  constexpr double kMost = 1e12;
  check(std::isfinite(value) && value > 0, key, ": must be a finite number above 0, got ", value);
  check(value >= kLeast && value <= kMost, key, ": must be from ", kLeast, " to ", kMost, ", got ",
        value);
}

// Counts of samples, layers or steps; beyond it sums of them could overflow.
inline void check_count(const std::string& key, int64_t value, int64_t least) {
  constexpr int64_t kMost = 100'000'000;
  check(value >= least, key, ": must be at least ", least, ", got ", value);
  check(value <= kMost, key, ": must be at most ", kMost, ", got ", value);
}

// At least 0, below 1.
inline void check_share(const std::string& key, double value) {
  check(value >= 0 && value < 1, key, ": must be in [0, 1), got ", value);
}

struct MeasureSettings {
  std::vector<std::string> names = {"accuracy", "logits_norm", "solution_rank",
                                    "post_softmax_rank"};
  std::vector<std::string> detectors = {"neco"};  // used when there are OOD datasets
  OodGroups groups;                      // of the OOD datasets, over which detection is averaged
  int64_t train_samples = 4000;          // of the training split, for probes, detectors, accuracy
  int64_t epoch_samples = 1000;          // of each split, for the metrics after every epoch
  std::vector<std::string> during = {};  // measured along with the metrics
  int64_t steps_per_decade = 0;    // metrics also at so many steps from 1 to 10, 10 to 100, ...
  double temperature = 0;          // of the softmax that is measured; 0: as in training at its end
  int64_t gradient_samples = 128;  // of the training split, for the gradients of the loss
  int64_t memory = MeasureContext().memory;  // bytes that all measures together may hold
};

// `memory` of the section "measure", written as 4GiB.
void read_memory(Settings& settings, int64_t& bytes);

// What the network starts from.
struct StartSettings {
  InitOptions options;
  std::string pretrained;         // a file of weights; empty: drawn from the run's seed
  std::string pretrained_part;    // of that file, see LoadOptions::part
  bool reset_head = false;        // pretrained weights but for the head
  double target_logits_norm = 0;  // per sample, see initial_logits.h; 0: as it comes
};

// An Error if there is no such device here.
torch::Device device_of(const std::string& name);

struct RunSettings;

// What a model for this dataset takes and gives: as many outputs as the dataset has classes, or as
// the loss wants.
ModelShape shape_for(const RunSettings& settings, const Dataset& dataset);

// An Error if these settings cannot train on this dataset.
void check_trainable(const RunSettings& settings, const Dataset& dataset);

// The whole description of a run.  Made from a config; everything is checked, nothing is unset.
struct RunSettings {
  int64_t seed = 0;
  std::string device = "cpu";
  std::string dataset = "glyphs100";
  std::vector<std::string> ood;
  std::vector<std::string> ood_classes;  // as DatasetRequest::classes, for each of them
  DatasetRequest request;
  std::string model = "resnet10";
  StartSettings init;
  TrainOptions train;
  CheckpointSettings checkpoints;
  double trained_temperature = 1;  // at the end of training; a learned one starts from it
  std::string loss_name = "cross_entropy";
  MeasureSettings measure;
  Config resolved;  // every key that exists, with its value

  static RunSettings from(const Config& config);

  // Fresh weights, drawn from the run's seed; prepared_model() in evaluate/trained_network.h gives
  // what training starts from.
  std::shared_ptr<Model> build_model(const ModelShape& shape) const;
  std::unique_ptr<Measure> make_measure(const std::string& name) const;
  std::unique_ptr<Measure> make_measure(const std::string& name, const MeasureContext& of) const;
  std::unique_ptr<Detector> make_detector(const std::string& name) const;
  MeasureContext context() const;
  // The loss that is trained with, at this temperature, as one number; with as many rows of each
  // image as it has views.
  std::function<torch::Tensor(const torch::Tensor& logits, const torch::Tensor& labels)> loss_at(
      double temperature) const;
  // An Error if the network is not trained as a classifier, which `who` needs.
  void check_classifies(const std::string& who) const;
};

}  // namespace kelvin
