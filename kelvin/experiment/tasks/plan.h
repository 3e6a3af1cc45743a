#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "kelvin/experiment/compute_api.h"
#include "kelvin/runs/config.h"

namespace kelvin {

struct Dataset;
struct RunSettings;

// See plan().
struct PlanRequest {
  static constexpr auto kTask = "plan";
  using Result = nlohmann::ordered_json;

  Config resolved = {};
};

// See initial_norms().
struct InitialNormsRequest {
  static constexpr auto kTask = "initial_norms";
  using Result = nlohmann::ordered_json;

  Config config = {};
  std::vector<int64_t> seeds = {};
  int64_t samples = 0;
};

// The layers of the model that the config's section "model" describes: name, shapes, parameters and
// multiply-adds of each, for images of `shape` (channels, height, width).
struct DescribeModelRequest {
  static constexpr auto kTask = "describe_model";
  using Result = nlohmann::ordered_json;

  Config config = {};
  std::vector<int64_t> shape = {};
  int64_t classes = 0;
};

// What a run would take on this machine, as far as a few seconds tell.
struct RunCosts {
  double training_minutes = 0;   // from a few real steps
  double observing_minutes = 0;  // the metrics during training
  // One pass over what is measured at the end; probes and other solvers come on top, and test
  // splits of OOD datasets unless data.test_samples says how large they are.
  double measuring_minutes = 0;
  int64_t memory_bytes = 0;  // of the process, at its highest; 0 if the context does not tell
  int64_t disk_bytes = 0;    // checkpoints, with the one that is being written
};

// Trains a network of its own for a few steps.  `data` is whole; its samples are counted.
RunCosts run_costs(const RunSettings& settings, const Dataset& data, const RunContext& context);

// What a run of a resolved config would cost and start from: parameters, layers, multiply-adds;
// minutes, memory and disk as a few steps on this machine let expect; the norm of the logits at
// step 0 beside what is predicted for it.
nlohmann::ordered_json plan(const Config& resolved, const RunContext& context);

// The norms of the logits at step 0 for each of the seeds, on `samples` training images (0: as many
// as a few seconds allow): one object for each, as in the plan.
nlohmann::ordered_json initial_norms(const Config& config, const std::vector<int64_t>& seeds,
                                     int64_t samples, const RunContext& context);

}  // namespace kelvin
