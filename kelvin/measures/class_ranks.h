#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/measures/sketched_sample.h"

namespace kelvin {

// How many directions the features of each class vary in, in every layer.
struct ClassRanks {
  struct Layer {
    std::string name;
    int64_t features = 0;
    int64_t width = 0;    // after projection
    torch::Tensor ranks;  // [classes]; 0 for those with fewer than 2 samples
  };
  std::vector<Layer> layers;   // in order of execution
  std::vector<int64_t> sizes;  // samples of each class
  double gamma = 0;
};

// Eigenvalues of each class's covariance above gamma times its largest; labels of the sample are in
// [0, classes).
ClassRanks class_ranks(const SketchedSample& sample, int64_t classes, double gamma);

// The mean over the classes that have at least 2 samples for every layer, then each class.
Readings class_rank_readings(const ClassRanks& ranks);

}  // namespace kelvin
