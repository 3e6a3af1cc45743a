#pragma once

#include "kelvin/experiment/compute_api.h"
#include "kelvin/runs/config.h"

namespace kelvin {

// `count` labelled images of the dataset that the config's section "data" describes, of the
// training or the test split, as equally of each class as possible, sorted by class.  Training
// images are augmented if the config says so, as the first epoch would show them.
ImageSamples sample_images(const Config& config, int64_t count, bool of_training,
                           const RunContext& context);

}  // namespace kelvin
