#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kelvin/runs/config.h"

namespace kelvin {

// One network, trained in one way.
struct BenchRow {
  std::string name;  // "mlp", "mlp depth 16"
  Config settings;   // of the run that is timed
};

// What the user asked for; empty texts and 0: not said.
struct BenchChoice {
  std::string model = {};
  std::string precision = {};
  int64_t batch_size = 0;
  bool uses_reference_ops = false;
  std::vector<std::string> overrides = {};  // key=value
};

// The chosen network, or the five usual ones in both precisions.
std::vector<BenchRow> bench_rows(const BenchChoice& choice);

// How kelvin's speed depends on batch size, depth and width; of the chosen network over batch sizes
// only.
std::vector<BenchRow> sweep_rows(const BenchChoice& choice);

}  // namespace kelvin
