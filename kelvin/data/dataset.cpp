#include "kelvin/data/dataset.h"

#include <torch/types.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/data/fit.h"
#include "kelvin/data/image_files.h"
#include "kelvin/data/subset.h"
#include "kelvin/sources/md5_sum.h"

namespace kelvin {
namespace {

// "imagefolder:photos" is the entry "imagefolder" with the path "photos".
std::pair<std::string, std::string> entry_and_path(const std::string& name) {
  const auto colon = name.find(':');
  if (colon == std::string::npos) return {name, ""};
  return {name.substr(0, colon), name.substr(colon + 1)};
}

DatasetRequest with_path(DatasetRequest request, const std::string& name) {
  request.path = entry_and_path(name).second;
  return request;
}

void check_split(const Dataset& dataset, const Images& images, const char* split) {
  const auto& pixels = images.pixels;
  if (images.files) {
    check(images.size() == images.files->size() && images.size() > 0, "dataset '", dataset.name,
          "': ", split, " needs files, and a label for each");
  } else {
    check(pixels.defined() && pixels.dtype() == torch::kUInt8 && pixels.dim() == 4 &&
              pixels.size(0) > 0,
          "dataset '", dataset.name, "': ", split,
          " pixels must be uint8 [samples, channels, height, width]");
    check(images.labels.dtype() == torch::kInt64 && images.labels.dim() == 1 &&
              images.labels.size(0) == pixels.size(0),
          "dataset '", dataset.name, "': ", split, " needs an int64 label for each image");
  }
  check(images.labels.min().item<int64_t>() >= 0 &&
            images.labels.max().item<int64_t>() < dataset.classes,
        "dataset '", dataset.name, "': ", split, " labels must be in [0, ", dataset.classes, ")");
}

void name_classes_by_number(Dataset& dataset) {
  for (int64_t label = 0; label < dataset.classes; ++label) {
    dataset.class_names.push_back(std::to_string(label));
  }
}

void keep_classes(Dataset& dataset, const std::vector<std::string>& wanted) {
  const auto chosen = chosen_classes(wanted, dataset.class_names);
  std::vector<std::string> names;
  names.reserve(chosen.size());
  for (const auto label : chosen)
    names.push_back(dataset.class_names.at(static_cast<size_t>(label)));
  dataset.train = of_classes(dataset.train, chosen);
  dataset.test = of_classes(dataset.test, chosen);
  dataset.class_names = names;
  dataset.classes = static_cast<int64_t>(names.size());
}

Images at_most(const Images& images, const Dataset& dataset, int64_t count, uint64_t seed) {
  if (count == 0 || images.size() <= count) return images;
  return select(images, balanced_sample(images.labels, dataset.classes, count, seed));
}

void take_samples(Dataset& dataset, const DatasetRequest& request) {
  const auto stream = [&](const char* name) { return derive_seed(request.subset_seed, name); };
  if (request.validation_samples > 0) {
    auto [kept, held_out] =
        hold_out(dataset.train, dataset.classes, request.validation_samples, stream("validation"));
    dataset.train = std::move(kept);
    dataset.validation = std::move(held_out);
  }
  dataset.train = at_most(dataset.train, dataset, request.train_samples, stream("train"));
  if (request.test_on_validation) dataset.test = dataset.validation;
  dataset.test = at_most(dataset.test, dataset, request.test_samples, stream("test"));
}

// Pictures on disk are decoded at the wanted size; images in memory are resampled.
void resize_images(Dataset& dataset, int64_t side) {
  for (auto* images : {&dataset.train, &dataset.validation, &dataset.test}) {
    if (images->size() == 0 || images->files) continue;
    const auto shape = images->shape();
    *images = fit_to(*images, {.channels = shape.channels, .height = side, .width = side});
  }
}

// How batches are made of the images.
void set_appearance(Dataset& dataset, const DatasetRequest& request) {
  const auto statistics =
      statistics_of(request.normalisation, {.mean = dataset.mean, .std_dev = dataset.std_dev});
  dataset.mean = statistics.mean;
  dataset.std_dev = statistics.std_dev;
  const auto shape = dataset.test.shape();
  check(request.upsample_to == 0 || request.upsample_to >= std::max(shape.height, shape.width),
        "data.upsample: must not be below the images' ", std::max(shape.height, shape.width),
        " pixels, got ", request.upsample_to, "; data.image_size makes them smaller");
  dataset.upsample_to = request.upsample_to;
}

void check_request(const std::string& name, const DatasetRequest& request) {
  check(request.train_samples >= 0 && request.test_samples >= 0, "dataset '", name,
        "': sample counts must not be below 0, got ", request.train_samples, " and ",
        request.test_samples);
  check(request.validation_samples >= 0, "dataset '", name,
        "': validation samples must not be below 0, got ", request.validation_samples);
  check(!request.test_on_validation || request.validation_samples > 0, "dataset '", name,
        "': to test on validation images, hold some out (data.validation_samples)");
  check(request.upsample_to >= 0 && request.upsample_to <= 4096,
        "data.upsample: must be from 0 (not at all) to 4096, got ", request.upsample_to);
}

// Drawn datasets make as many samples as they are asked for, before any are taken away again.
DatasetRequest enough_for(DatasetRequest request) {
  if (!request.classes.empty() || request.validation_samples > 0) {
    request.train_samples = 0;
    request.test_samples = 0;
  }
  return request;
}

}  // namespace

ImageShape Images::shape() const {
  if (files) return {.channels = 3, .height = files->side(), .width = files->side()};
  return {.channels = pixels.size(1), .height = pixels.size(2), .width = pixels.size(3)};
}

ImageShape Dataset::shown_shape() const {
  auto shape = test.shape();
  if (upsample_to > 0) shape.height = shape.width = upsample_to;
  return shape;
}

Registry<DatasetEntry>& datasets() {
  static Registry<DatasetEntry> registry("dataset");
  return registry;
}

const DatasetEntry& find_dataset(const std::string& name) {
  const auto& entry = datasets().find(entry_and_path(name).first);
  check(entry.classes == 0 || name.find(':') == std::string::npos, "dataset '", name,
        "': only datasets whose files tell their classes take a path after a colon");
  return entry;
}

DatasetFacts dataset_facts(const std::string& name, const DatasetRequest& request) {
  const auto& entry = find_dataset(name);
  auto facts = entry.facts ? entry.facts(with_path(request, name))
                           : DatasetFacts{.classes = entry.classes, .shape = {}};
  for (const auto side : {request.image_size, request.upsample_to}) {
    if (side > 0) facts.shape.height = facts.shape.width = side;
  }
  if (request.classes.size() > 1) facts.classes = static_cast<int64_t>(request.classes.size());
  if (request.classes.size() == 1) {
    const std::vector<std::string> unnamed(static_cast<size_t>(facts.classes));
    facts.classes = static_cast<int64_t>(chosen_classes(request.classes, unnamed).size());
  }
  return facts;
}

Dataset load_dataset(const std::string& name, const DatasetRequest& request) {
  const auto& entry = find_dataset(name);
  check_request(name, request);
  auto dataset = entry.load(enough_for(with_path(request, name)));
  dataset.name = name;
  if (entry.classes > 0) dataset.classes = entry.classes;
  if (dataset.class_names.empty()) name_classes_by_number(dataset);
  // A collection of images on disk may have no training split; who needs one says so.
  if (!dataset.test.files || dataset.train.size() > 0) {
    check_split(dataset, dataset.train, "train");
  }
  check_split(dataset, dataset.test, "test");
  if (!request.classes.empty()) keep_classes(dataset, request.classes);
  take_samples(dataset, request);
  if (request.image_size > 0) resize_images(dataset, request.image_size);
  set_appearance(dataset, request);
  for (auto* images : {&dataset.train, &dataset.validation, &dataset.test}) {
    if (images->pixels.defined()) images->pixels = images->pixels.contiguous();
    if (images->labels.defined()) images->labels = images->labels.contiguous();
  }
  return dataset;
}

namespace {

std::string_view bytes_of(const torch::Tensor& tensor) {
  return {static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace

std::string fingerprint(const Images& images) {
  if (images.size() == 0) return md5_of("");
  const auto labels = images.labels.contiguous();
  // A sum of sums: the pixels need not be copied to stand behind the labels.
  auto sums = md5_of(bytes_of(labels));
  if (images.files) {
    for (const auto& file : images.files->files().paths) sums += file.filename().string() + "\n";
  } else {
    const auto pixels = images.pixels.contiguous();
    sums += md5_of(bytes_of(pixels));
  }
  return md5_of(sums);
}

}  // namespace kelvin
