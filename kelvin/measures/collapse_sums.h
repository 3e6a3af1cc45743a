#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kelvin/measures/class_moments.h"
#include "kelvin/measures/collapse_readings.h"
#include "kelvin/model/record.h"
#include "kelvin/numerics/feature_sketch.h"
#include "kelvin/ops/tensors.h"

namespace kelvin {

// What neural_collapse accumulates of each matrix of features, and how it keeps within its memory.

// One matrix of features of a record.
struct CollapseRows {
  std::string layer;  // empty for the classifier's input
  torch::Tensor rows;
};

// The classifier's input, if the record has it, then the outputs of its layers.
std::vector<CollapseRows> collapse_rows(const Record& record);

// How messages name it.
std::string collapse_place(const std::string& layer);

// Layers with more features than this are projected, so that the sums of all classes take no more
// than a third of `memory`.  The classifier's input is never projected: it is compared with the
// weights.
int64_t collapse_width_limit(const Record& record, int64_t memory);

// Bytes that the sums of all matrices take at most.
int64_t collapse_bytes(const Record& record, int64_t memory);

// First pass: sums of the classes.  Second pass: the spread around their means.
struct CollapseSums {
  std::string layer;
  FeatureSketch sketch;
  std::optional<ClassSums> sums;
  std::optional<ClassSpread> spread = {};
  CentreMismatch own = {};
  CentreMismatch test = {};

  // `cutoff` is the smallest that readings will ask for.
  void start_second_pass(double cutoff);
  // Both must be in the same pass, the second around the same means.
  void merge(const CollapseSums& other);
  // Under names that begin with the layer's.
  void add_state(NamedTensors& tensors) const;
};

// Empty sums for the matrices of `record`.
std::vector<CollapseSums> collapse_sums(const Record& record, int64_t memory, uint64_t seed);

}  // namespace kelvin
