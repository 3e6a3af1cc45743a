#pragma once

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <vector>

#include "kelvin/data/augmentation.h"
#include "kelvin/data/dataset.h"

namespace kelvin {

struct Batch {
  torch::Tensor images;  // [rows, channels, height, width], normalised, channels-last
  torch::Tensor labels;  // int64 [rows]; a row is a view of an image
};

// The order in which epoch `epoch` visits `samples` images: a permutation that
// depends on (seed, epoch) alone, not on threads or on earlier epochs.
std::vector<int64_t> epoch_order(uint64_t seed, int64_t epoch, int64_t samples);

// `count` distinct indices below `samples`, ascending, chosen by `seed`; all of them if fewer.
std::vector<int64_t> fixed_sample(uint64_t seed, int64_t count, int64_t samples);

// The same indices in no particular order: batches of them have all classes, also where a dataset
// is sorted by class.
std::vector<int64_t> shuffled_sample(uint64_t seed, int64_t count, int64_t samples);

struct BatchOptions {
  Augmentation augmentation = Augmentation::none;
  uint64_t seed = 0;  // of the augmentation
  // Of each image: all images as they are shown first, then all in the same order as they are shown
  // once more, ...
  int64_t views = 1;
  torch::ScalarType type = torch::kFloat32;  // or bfloat16
  bool on_all_cores = true;  // for images in memory; files are always decoded on all of them
  int64_t upsample_to = 0;   // side to enlarge the batch to, bilinearly; 0: as the images are
};

// Turns the images at `indices` into a normalised batch, in one pass over their bytes.  What an
// image becomes depends on (seed, epoch, index, view) alone.
class BatchMaker {
 public:
  BatchMaker(const std::array<double, 3>& mean, const std::array<double, 3>& std_dev,
             const BatchOptions& options = {});
  // Normalises and enlarges as a network that is trained on `dataset` expects it.
  explicit BatchMaker(const Dataset& dataset, BatchOptions options = {});

  Batch make(const Images& images, const std::vector<int64_t>& indices, int64_t epoch = 0) const;

 private:
  // What each byte of each channel becomes.
  template <class Element>
  using Table = std::array<std::array<Element, 256>, 3>;

  template <class Element>
  void fill(const Table<Element>& table, const Images& images, const std::vector<int64_t>& indices,
            int64_t epoch, Element* batch) const;

  BatchOptions options_;
  Table<float> floats_ = {};
  Table<c10::BFloat16> bfloats_ = {};
};

}  // namespace kelvin
