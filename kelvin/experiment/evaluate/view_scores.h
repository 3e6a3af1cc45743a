#pragma once

#include <cstdint>
#include <vector>

#include "kelvin/data/batches.h"
#include "kelvin/data/dataset.h"
#include "kelvin/model/model.h"
#include "kelvin/train/train.h"

namespace kelvin {

// How training with a loss that compares views shows images outside of training: the same views
// whenever they are looked at.  As they are for a loss that does not.
BatchOptions views_of(const TrainOptions& train, uint64_t seed);

struct ViewOptions {
  std::vector<int64_t> indices = {};  // of the images, in the order in which they fill batches
  double temperature = 1;
  uint64_t seed = 0;              // of the views
  bool batch_statistics = false;  // as in ExtractOptions
};

// What the loss says of views of these images, in batches as large as those of training: the number
// of candidates decides how hard they are to tell.  Means over the views.
struct ViewScores {
  double loss = 0;
  double accuracy = 0;  // share of views whose nearest candidate shows the same image
};

// In evaluation mode, in float32.  Normalises as `trained_on` says.
ViewScores view_scores(Model& model, const Images& images, const Dataset& trained_on,
                       const TrainOptions& train, const ViewOptions& options);

}  // namespace kelvin
