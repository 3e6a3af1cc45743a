#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kelvin/data/augmentation.h"
#include "kelvin/data/dataset.h"
#include "kelvin/model/model.h"
#include "kelvin/model/precision.h"
#include "kelvin/train/ema.h"
#include "kelvin/train/loss.h"
#include "kelvin/train/optimizer.h"
#include "kelvin/train/schedule.h"

namespace kelvin {

// Whether a higher temperature, which makes gradients smaller, is met by a higher learning rate.
enum class LearningRateScaling { none, linear, sqrt };

LearningRateScaling learning_rate_scaling_of(const std::string& name);

struct TrainOptions {
  TemperatureOptions temperature =
      {};          // the logits are divided by it in the loss, and nowhere else
  Loss loss = {};  // cross-entropy if there is none
  int64_t epochs = 10;
  int64_t batch_size = 128;
  double learning_rate = 0.1;
  Schedule schedule = Schedule::cosine;
  std::vector<double> milestones = {};  // in epochs, for Schedule::step
  double decay_rate = 0.1;              // at each of them
  double warmup_epochs = 1;
  LearningRateScaling learning_rate_scaling =
      LearningRateScaling::none;  // the learning rate times T, or its square root
  OptimizerOptions optimizer = {};
  double ema_decay = 0;  // of the EMA of the weights; 0: no EMA
  Precision precision = Precision::fp32;
  bool uses_reference_ops = false;  // LibTorch's own operators, see ops/reference_ops.h
  Augmentation augmentation = Augmentation::none;
  uint64_t seed = 0;                     // of the order of the samples and of their augmentation
  std::function<double()> seconds = {};  // a clock, if the parts of a step are to be timed
};

// Seconds of the last step, if there is a clock.
struct StepSeconds {
  double data = 0;  // waited for a batch
  double forward = 0;
  double backward = 0;
  double optimizer = 0;
};

// Sums over the samples of the epoch under way.
struct EpochSums {
  double loss = 0;
  double entropy = 0;
  double right = 0;  // answers during training; entropies and answers are means over views
  int64_t samples = 0;
};

// All that training needs to go on from where it is, to the same bits.
struct TrainSnapshot {
  int64_t epoch = 0;        // finished epochs
  int64_t step = 0;         // finished steps
  int64_t epoch_steps = 0;  // of them in the epoch under way
  int64_t images = 0;
  EpochSums sums = {};
  double temperature = 1;
  NamedTensors weights = {};  // to be used: their EMA if there is one
  NamedTensors state = {};    // of the optimizer, of random numbers, ...
};

// Where training stands.  The model is in training mode; an observer that
// changes this must restore it.
struct TrainState {
  Model& model;
  const TrainOptions& options;
  int64_t epoch = 0;  // finished epochs
  int64_t step = 0;   // finished steps
  int64_t total_steps = 0;
  int64_t steps_per_epoch = 0;
  double learning_rate = 0;  // of the last step
  double temperature = 1;    // likewise; before training that of the first
  double loss = 0;           // of the last step's batch; at the end of an epoch the epoch's mean
  double entropy = 0;        // of the outputs, likewise
  double accuracy = 0;       // likewise; of a loss of two views the share of views that were told
  int64_t images = 0;        // trained on so far
  StepSeconds seconds = {};
  WeightEma* ema = nullptr;
  std::function<TrainSnapshot()> snapshot = {};
};

// The weights that are to be used, in the model for as long as it lives: their EMA if there is one.
class UsedWeights {
 public:
  explicit UsedWeights(const TrainState& state) : ema_(state.ema) {
    if (ema_ != nullptr) ema_->exchange();
  }
  ~UsedWeights() {
    if (ema_ != nullptr) ema_->exchange();
  }
  UsedWeights(const UsedWeights&) = delete;
  UsedWeights& operator=(const UsedWeights&) = delete;

 private:
  WeightEma* ema_;
};

// Training knows no measures, logs or checkpoints: whoever wants them passes observers.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void before_training(const TrainState&) {}  // also when it goes on from a snapshot
  virtual void after_step(const TrainState&) {}
  virtual void after_epoch(const TrainState&) {}
  virtual void at_stop(const TrainState&) {}  // because somebody asked for it
};

// How many steps `train` takes on `samples` images.
int64_t total_steps(const TrainOptions& options, int64_t samples);

// The temperature of the last step; of a learned one where it starts.
double last_temperature(const TrainOptions& options, int64_t samples);

enum class TrainOutcome { finished, stopped };

// What training leaves behind besides the weights, which are in the model.
struct TrainResult {
  TrainOutcome outcome = TrainOutcome::finished;
  double temperature = 1;  // of the last step; if it is learned, what was learned
  int64_t steps = 0;       // in all, those before `start` too
};

// Minimises the loss at a temperature, from `start` if there is one.  Asks `should_stop` after each
// step.  Throws an Error, before the weights are touched by it, if the loss is not finite.  At the
// end the model has the weights that are to be used.  On whichever device and in whichever type the
// model's weights are.
TrainResult train(Model& model, const Dataset& dataset, const TrainOptions& options,
                  const std::vector<TrainObserver*>& observers,
                  const std::function<bool()>& should_stop, const TrainSnapshot* start = nullptr);

// An Error if train() could not go on from `start`.  The model gets its weights.
void check_start(Model& model, const Dataset& dataset, const TrainOptions& options,
                 const TrainSnapshot& start);

}  // namespace kelvin
