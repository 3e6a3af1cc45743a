#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kelvin/experiment/compute_api.h"
#include "kelvin/formats/images.h"
#include "kelvin/runs/config.h"

namespace kelvin {

struct ImageSamples {
  RawImages images = {};
  std::vector<std::string> class_names = {};
};

struct SampleImagesRequest {
  static constexpr auto kTask = "sample_images";
  using Result = ImageSamples;

  Config config = {};
  int64_t count = 0;
  bool of_training = true;
};

// `count` labelled images of the dataset that the config's section "data" describes, of the
// training or the test split, as equally of each class as possible, sorted by class.  Training
// images are augmented if the config says so, as the first epoch would show them.
ImageSamples sample_images(const Config& config, int64_t count, bool of_training,
                           const RunContext& context);

}  // namespace kelvin
