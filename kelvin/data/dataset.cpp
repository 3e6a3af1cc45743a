#include "kelvin/data/dataset.h"

#include <torch/types.h>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

void check_split(const Dataset& dataset, const Images& images, const char* split) {
  const auto& pixels = images.pixels;
  check(pixels.dtype() == torch::kUInt8 && pixels.dim() == 4 && pixels.size(0) > 0, "dataset '",
        dataset.name, "': ", split, " pixels must be uint8 [samples, channels, height, width]");
  check(images.labels.dtype() == torch::kInt64 && images.labels.dim() == 1 &&
            images.labels.size(0) == pixels.size(0),
        "dataset '", dataset.name, "': ", split, " needs an int64 label for each image");
  check(images.labels.min().item<int64_t>() >= 0 &&
            images.labels.max().item<int64_t>() < dataset.classes,
        "dataset '", dataset.name, "': ", split, " labels must be in [0, ", dataset.classes, ")");
}

}  // namespace

Registry<DatasetEntry>& datasets() {
  static Registry<DatasetEntry> registry("dataset");
  return registry;
}

Dataset load_dataset(const std::string& name, const DatasetRequest& request) {
  const auto& entry = datasets().find(name);
  check(request.train_samples >= 0 && request.test_samples >= 0, "dataset '", name,
        "': sample counts must not be below 0, got ", request.train_samples, " and ",
        request.test_samples);
  auto dataset = entry.load(request);
  dataset.name = name;
  dataset.classes = entry.classes;
  check_split(dataset, dataset.train, "train");
  check_split(dataset, dataset.test, "test");
  for (auto* images : {&dataset.train, &dataset.test}) {
    images->pixels = images->pixels.contiguous();  // batches are gathered by address
    images->labels = images->labels.contiguous();
  }
  return dataset;
}

}  // namespace kelvin
