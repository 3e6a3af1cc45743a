#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kelvin/data/dataset.h"
#include "kelvin/model/model.h"
#include "kelvin/representations/record.h"

namespace kelvin {

struct ExtractOptions {
  Split split = Split::test;
  bool is_ood = false;
  bool with_layers = false;     // records of all layers, not only of the classifier
  bool with_attention = false;  // records of all attention layers
  int64_t batch_size = 256;
  std::vector<int64_t> indices = {};  // which samples; empty for all
};

// Runs the model once over a split in evaluation mode without gradients, in
// float32, and hands each batch's record to `consume`.  Normalises with the
// statistics of `trained_on`, also for foreign images: the network expects them.
// Leaves the model in the mode it was in.
void extract(Model& model, const Dataset& dataset, const Dataset& trained_on,
             const ExtractOptions& options, const std::function<void(const Record&)>& consume);

}  // namespace kelvin
