#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>

#include "kelvin/representations/record.h"

namespace kelvin {

// Where a probe reads a layer.
enum class ProbeTap { output, before_add };

// "after ...", of the place a layer is really read at; before_add is that of its output where
// nothing is added.
std::string tap_text(const LayerRecord& layer, ProbeTap tap);
// The same of all layers together.
std::string tap_text(ProbeTap tap);

// One float32 row for each sample: of all of it, or of maps averaged to at most pool x pool and
// averaged tokens.  Flattened rows share the layer's memory where they can.
torch::Tensor flattened_rows(const LayerRecord& layer, ProbeTap tap);
torch::Tensor pooled_rows(const LayerRecord& layer, ProbeTap tap, int64_t pool);

// An Error unless labels and classes of a record can be probed for.
void check_labels(const Record& record);
// An Error if there are fewer training samples than classes: most could never be named.
void check_enough_samples(int64_t samples, int64_t classes);

}  // namespace kelvin
