#pragma once

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kelvin/core/registry.h"
#include "kelvin/core/settings.h"
#include "kelvin/data/augmentation.h"
#include "kelvin/data/image_files.h"

namespace kelvin {

// What every image of a dataset measures.
struct ImageShape {
  int64_t channels = 3;
  int64_t height = 32;
  int64_t width = 32;

  bool operator==(const ImageShape&) const = default;
};

// Labelled images of one split: bytes in memory, or files that are decoded when they are asked for.
struct Images {
  torch::Tensor pixels;  // uint8 [samples, channels, height, width]; undefined for files
  torch::Tensor labels;  // int64 [samples], in [0, classes)
  std::shared_ptr<const ImageFiles> files = nullptr;  // null for images in memory

  int64_t size() const { return labels.defined() ? labels.size(0) : 0; }
  ImageShape shape() const;
};

struct Dataset {
  std::string name;
  int64_t classes = 0;
  std::vector<std::string> class_names = {};
  Images train;            // empty for a collection of images without a training split
  Images validation = {};  // held out of the training images, if that was asked for
  Images test;
  std::array<double, 3> mean = {0.5, 0.5, 0.5};     // per channel, of pixels in [0, 1]
  std::array<double, 3> std_dev = {0.5, 0.5, 0.5};  // per channel
  int64_t upsample_to = 0;  // side that batches are enlarged to; 0: as the images are

  // What a network sees.
  ImageShape shown_shape() const;
};

// What is wanted of a dataset.
struct DatasetRequest {
  int64_t train_samples = 0;  // 0: the whole split; otherwise as equally of each class as possible
  int64_t test_samples = 0;   // likewise
  int64_t validation_samples = 0;          // of the training images, held out
  bool test_on_validation = false;         // `test` becomes the held-out images
  std::vector<std::string> classes = {};   // {"10"}: the first ten; otherwise names; empty: all
  uint64_t subset_seed = 0;                // of the choice of samples
  std::filesystem::path data_folder = {};  // where datasets lie
  std::string path = {};                   // what follows the colon in "imagefolder:PATH"
  std::filesystem::path image_root = {};   // of the paths in image lists; empty: the list's folder
  int64_t image_size = 0;                  // side of the images; 0: the dataset's own
  double crop_share = 0.875;               // of pictures on disk
  bool cache_images = false;               // decode pictures once and keep them in memory
  Normalisation normalisation = Normalisation::dataset;
  int64_t upsample_to = 0;  // enlarges batches; unlike image_size it costs no memory for the images
};

// What is known of a dataset before its images are read.
struct DatasetFacts {
  int64_t classes = 0;
  ImageShape shape = {};      // that a network sees
  int64_t train_samples = 0;  // of the whole split; 0: only its files tell
};

struct DatasetEntry {
  std::string summary;
  std::string reference;
  int64_t classes = 0;  // 0: only its files tell, see `facts`
  // Reads what the request asks for; may give more samples and classes than that.
  std::function<Dataset(const DatasetRequest&)> load;
  // For datasets whose classes or shape are not 32 x 32 in RGB; empty for others.
  std::function<DatasetFacts(const DatasetRequest&)> facts = {};
};

Registry<DatasetEntry>& datasets();

// The entry of "cifar10" or of "imagefolder:PATH".
const DatasetEntry& find_dataset(const std::string& name);

// Classes and shape of what load_dataset would give, without reading images.
DatasetFacts dataset_facts(const std::string& name, const DatasetRequest& request);

// Loads a registered dataset, checks that it keeps its promises, and takes the samples that were
// asked for.
Dataset load_dataset(const std::string& name, const DatasetRequest& request);

// The MD5 sum of labels and pixels in their order; of pictures on disk that of their labels and
// names, because reading them all would take too long.
std::string fingerprint(const Images& images);

}  // namespace kelvin
