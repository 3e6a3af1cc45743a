#pragma once

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <vector>

#include "kelvin/data/dataset.h"

namespace kelvin {

struct Batch {
  torch::Tensor images;  // float [samples, channels, height, width], normalised, channels-last
  torch::Tensor labels;  // int64 [samples]
};

// The order in which epoch `epoch` visits `samples` images: a permutation that
// depends on (seed, epoch) alone, not on threads or on earlier epochs.
std::vector<int64_t> epoch_order(uint64_t seed, int64_t epoch, int64_t samples);

// `count` distinct indices below `samples`, ascending, chosen by `seed`; all of them if fewer.
std::vector<int64_t> fixed_sample(uint64_t seed, int64_t count, int64_t samples);

// Turns the images at `indices` into a normalised batch.
class BatchMaker {
 public:
  BatchMaker(const std::array<double, 3>& mean, const std::array<double, 3>& deviation);

  Batch make(const Images& images, const std::vector<int64_t>& indices) const;

 private:
  std::array<float, 3> scale_;
  std::array<float, 3> shift_;
};

}  // namespace kelvin
