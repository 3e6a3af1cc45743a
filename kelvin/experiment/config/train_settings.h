#pragma once

#include "kelvin/core/settings.h"
#include "kelvin/train/train.h"

namespace kelvin {

// The config's section "train"; everything is checked.
TrainOptions read_train(Settings& settings, uint64_t seed);

// When the state of a run is saved besides the end of every epoch.
struct CheckpointSettings {
  int64_t steps = 0;       // at multiples of it; 0: never
  bool keeps_all = false;  // and not only the last and the best
};

CheckpointSettings read_checkpoints(Settings& settings);

}  // namespace kelvin
