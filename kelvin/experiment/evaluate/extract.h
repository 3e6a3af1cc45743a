#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kelvin/data/dataset.h"
#include "kelvin/model/model.h"
#include "kelvin/model/record.h"

namespace kelvin {

struct ExtractOptions {
  Split split = Split::test;
  bool is_ood = false;
  bool with_layers = false;     // records of all layers, not only of the classifier
  bool with_attention = false;  // records of all attention layers
  // Batch normalisations use the statistics of each batch instead of those of training: for a
  // network that is not trained yet.
  bool batch_statistics = false;
  int64_t batch_size =
      256;  // of 32 x 32 images; fewer of larger ones or with attention, at least 16
  std::vector<int64_t> indices = {};  // which samples; empty for all
};

// As many batches as that takes, of nearly equal size: a last batch of one image would have no
// statistics.  Gives where each begins, and the end.
std::vector<int64_t> equal_batches(int64_t samples, int64_t batch_size);

// Runs the model once over a split in evaluation mode without gradients, in
// float32, and hands each batch's record, in which nothing requires gradients, to `consume`.
// Normalises with the statistics of `trained_on`, also for OOD images: the network expects
// them. Leaves the model in the mode it was in.
void extract(Model& model, const Dataset& dataset, const Dataset& trained_on,
             const ExtractOptions& options, const std::function<void(const Record&)>& consume);

struct GradientOptions {
  std::vector<int64_t> indices;  // of the training split, one batch
  // Of logits and labels, one number: what is differentiated.
  std::function<torch::Tensor(const torch::Tensor&, const torch::Tensor&)> loss;
  bool batch_statistics = false;  // as above
};

// One batch of the training split, with the gradients of its loss in the weight of every layer.  In
// evaluation mode and float32; leaves no gradients behind.
Record extract_gradients(Model& model, const Dataset& dataset, const GradientOptions& options);

}  // namespace kelvin
