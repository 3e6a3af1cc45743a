#pragma once

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "kelvin/core/registry.h"
#include "kelvin/core/settings.h"

namespace kelvin {

// Labelled images of one split.
struct Images {
  torch::Tensor pixels;  // uint8 [samples, channels, height, width]
  torch::Tensor labels;  // int64 [samples], in [0, classes)

  int64_t size() const { return labels.size(0); }
};

struct Dataset {
  std::string name;
  int64_t classes = 0;
  Images train;
  Images test;
  std::array<double, 3> mean = {0.5, 0.5, 0.5};       // per channel, of pixels in [0, 1]
  std::array<double, 3> deviation = {0.5, 0.5, 0.5};  // per channel
};

// How much of a dataset is wanted.
struct DatasetRequest {
  int64_t train_samples = 0;  // 0: the whole split
  int64_t test_samples = 0;   // 0: the whole split
};

struct DatasetEntry {
  std::string summary;
  std::string reference;
  int64_t classes = 0;
  std::function<Dataset(const DatasetRequest&)> load;
};

Registry<DatasetEntry>& datasets();

// Loads a registered dataset and checks that it keeps its promises.
Dataset load_dataset(const std::string& name, const DatasetRequest& request);

}  // namespace kelvin
