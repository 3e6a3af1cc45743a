#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kelvin/data/augmentation.h"
#include "kelvin/data/dataset.h"
#include "kelvin/model/model.h"
#include "kelvin/train/schedule.h"

namespace kelvin {

struct TrainOptions {
  double temperature = 1;  // the logits are divided by it in the loss, and nowhere else
  int64_t epochs = 10;
  int64_t batch_size = 128;
  double rate = 0.1;
  Schedule schedule = Schedule::cosine;
  double warmup_epochs = 1;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 1e-4;  // coupled: added to the gradient
  Augmentation augmentation = Augmentation::none;
  uint64_t seed = 0;  // of the order of the samples and of their augmentation
};

// Where training stands.  The model is in training mode; an observer that
// changes this must restore it.
struct TrainState {
  Model& model;
  const TrainOptions& options;
  int64_t epoch = 0;  // finished epochs
  int64_t step = 0;   // finished steps
  int64_t total_steps = 0;
  double rate = 0;     // of the last step
  double loss = 0;     // of the last step's batch; at the end of an epoch the epoch's mean
  int64_t images = 0;  // trained on so far
};

// Training knows no measures, logs or checkpoints: whoever wants them passes observers.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void before_training(const TrainState&) {}
  virtual void after_step(const TrainState&) {}
  virtual void after_epoch(const TrainState&) {}
};

// How many steps `train` takes on `samples` images.
int64_t total_steps(const TrainOptions& options, int64_t samples);

enum class TrainOutcome { finished, stopped };

// Stochastic gradient descent on the cross-entropy at a temperature.  Asks
// `should_stop` after each step.  Throws an Error if the loss is not finite.
TrainOutcome train(Model& model, const Dataset& dataset, const TrainOptions& options,
                   const std::vector<TrainObserver*>& observers,
                   const std::function<bool()>& should_stop);

}  // namespace kelvin
