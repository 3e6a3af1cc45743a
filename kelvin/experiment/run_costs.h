#pragma once

#include <cstdint>

#include "kelvin/experiment/compute_api.h"
#include "kelvin/experiment/run_settings.h"

namespace kelvin {

// What a run would take on this machine, as far as a few seconds tell.
struct RunCosts {
  double training_minutes = 0;   // from a few real steps
  double observing_minutes = 0;  // the metrics during training
  // One pass over what is measured at the end; probes and other solvers come on top, and test
  // splits of foreign datasets unless data.test_samples says how large they are.
  double measuring_minutes = 0;
  int64_t memory_bytes = 0;  // of the process, at its highest; 0 if the context does not tell
  int64_t disk_bytes = 0;    // checkpoints, with the one that is being written
};

// Trains a network of its own for a few steps.  `data` is whole; its samples are counted.
RunCosts run_costs(const RunSettings& settings, const Dataset& data, const RunContext& context);

}  // namespace kelvin
