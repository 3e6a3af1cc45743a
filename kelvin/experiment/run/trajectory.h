#pragma once

#include <optional>
#include <vector>

#include "kelvin/data/dataset.h"
#include "kelvin/experiment/compute_api.h"
#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/evaluate/measure_set.h"
#include "kelvin/experiment/evaluate/view_scores.h"
#include "kelvin/experiment/run/run_log.h"
#include "kelvin/train/train.h"

namespace kelvin {

// Looks at the network at initialisation, at steps evenly spread in their logarithm, and after each
// epoch, on one fixed sample of each split: a line of metrics with accuracies, norms and ranks, and
// a line of the trajectory with spectra and the readings of `measure.during`, and the curves that
// these keep of every look.  Without a classifier the accuracies are those of telling views.
class Trajectory : public TrainObserver {
 public:
  // `OOD` datasets are for those measures during training that need them.
  Trajectory(const Dataset& dataset, const std::vector<Dataset>& ood, const RunSettings& settings,
             const RunLog& log, const RunContext& context);

  void before_training(const TrainState& state) override;
  void after_step(const TrainState& state) override;
  void after_epoch(const TrainState& state) override;

  // How much the norm of the logits grew since initialisation; nothing if they were 0.
  std::optional<Reading> norm_growth() const;

  // On the sample of the test split, of the last line.
  double test_accuracy() const { return test_accuracy_; }

  // Of training alone, up to now.
  double seconds() const;
  // Of the part of the training that an earlier process did.
  void set_seconds_before(double seconds) { seconds_before_ = seconds; }

 private:
  void observe(const TrainState& state, double epoch, bool is_epoch_end);
  struct Observed {
    Readings readings = {};
    NamedTensors curves = {};  // that are kept of every look
    // Of what is trained for, on the sample of each split.
    ViewScores train = {};
    ViewScores test = {};
  };
  Observed measured(const TrainState& state) const;
  ViewScores view_scores_of(const TrainState& state, const Images& images) const;
  void check_memory(const TrainState& state) const;
  MeasureSet measures_for(const TrainState& state) const;
  bool is_close_look(const TrainState& state) const;

  const Dataset& dataset_;
  const std::vector<Dataset>& ood_;
  const RunSettings& settings_;
  const RunLog& log_;
  const RunContext& context_;
  int64_t train_samples_ = 0;
  int64_t test_samples_ = 0;
  std::vector<int64_t> log_spaced_;  // steps to look at
  double seconds_before_ = 0;
  double start_ = 0;      // seconds
  double observing_ = 0;  // seconds spent here, which training is not charged for
  double first_norm_ = 0;
  double last_norm_ = 0;
  double test_accuracy_ = 0;
};

// What a trajectory that goes on has to know of the lines of metrics before it.
struct SeenBefore {
  double first_norm = 0;  // of the logits, at initialisation
  double last_norm = 0;
  double test_accuracy = 0;  // of the last line
};
// `origin` stands before the messages of lines that do not tell it.
SeenBefore seen_before(const std::vector<nlohmann::ordered_json>& metrics, bool classifies,
                       const std::string& origin);

// The steps from 1 to `total` that are evenly spread in their logarithm, so many from each power of
// ten to the next; none for 0.
std::vector<int64_t> log_spaced_steps(int64_t per_decade, int64_t total);

}  // namespace kelvin
