#include <torch/types.h>

#include <memory>
#include <numeric>
#include <utility>

#include "kelvin/data/dataset.h"
#include "kelvin/data/picture_datasets.h"
#include "kelvin/sources/known_dataset.h"
#include "kelvin/sources/stored_dataset.h"

// The published datasets, each registered under its name.

namespace kelvin {
namespace {

Images images_of(RawImages&& raw) {
  // The tensor keeps the bytes alive: CIFAR need not be in memory twice.
  const auto kept = std::make_shared<RawImages>(std::move(raw));
  return {.pixels = torch::from_blob(
              kept->pixels.data(), {kept->size(), kept->channels, kept->height, kept->width},
              [kept](void*) {}, torch::kUInt8),
          .labels = torch::tensor(kept->labels, torch::kInt64)};
}

bool is_on_disk(const KnownDataset& known) {
  return known.layouts.front().format == StoredFormat::image_folder;
}

Dataset load(const KnownDataset& known, const DatasetRequest& request) {
  Dataset dataset;
  dataset.class_names = known.class_names;
  dataset.mean = known.mean;
  dataset.std_dev = known.std_dev;
  const auto read = [&](StoredSplit split) {
    if (!is_on_disk(known)) return images_of(read_stored(known, request.data_folder, split));
    return pictures(list_stored(known, request.data_folder, split), request, known.height);
  };
  dataset.train = read(StoredSplit::train);
  dataset.test = read(StoredSplit::test);
  return dataset;
}

DatasetFacts facts(const KnownDataset& known) {
  return {.classes = known.classes(),
          .shape = {.channels = known.channels, .height = known.height, .width = known.width},
          .train_samples =
              std::accumulate(known.train_counts.begin(), known.train_counts.end(), int64_t{0})};
}

bool register_all() {
  for (const auto& known : known_datasets()) {
    datasets().add(
        known.name,
        {.summary = known.summary,
         .reference = known.citation,
         .classes = known.classes(),
         .load = [&known](const DatasetRequest& request) { return load(known, request); },
         .facts = [&known](const DatasetRequest&) { return facts(known); }});
  }
  return true;
}

const bool stored_registered = register_all();

}  // namespace
}  // namespace kelvin
