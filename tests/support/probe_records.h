#pragma once

#include <torch/types.h>

#include <string>
#include <utility>
#include <vector>

#include "kelvin/measures/probes.h"
#include "tests/support/measured.h"
#include "tests/support/tensors.h"

namespace kelvin {

using Outputs = std::vector<std::pair<std::string, torch::Tensor>>;

inline Record probe_record(Split split, const torch::Tensor& labels, const Outputs& outputs,
                           const std::string& ood = "") {
  Record record;
  record.split = split;
  record.ood = ood;
  record.labels = labels;
  record.classes = labels.max().item<int64_t>() + 1;
  for (const auto& [name, output] : outputs) {
    LayerRecord layer;
    layer.name = name;
    layer.output = output;
    record.layers.push_back(layer);
  }
  return record;
}

// Classes in turn; class 0 twice as often as any other while training.
inline torch::Tensor labels_for(Split split, int64_t classes) {
  const auto turn = torch::arange(classes);
  return split == Split::test ? turn.repeat({10}) : torch::cat({labels_of({0}), turn}).repeat({20});
}

inline torch::Tensor separable(const torch::Tensor& labels, uint64_t seed = 0) {
  const auto classes = labels.max().item<int64_t>() + 1;
  return 4 * torch::one_hot(labels, classes) + 0.1 * noise({labels.size(0), classes}, seed);
}

// Features that say nothing: the probe can only name the commonest class.
inline torch::Tensor blind(const torch::Tensor& labels) { return torch::ones({labels.size(0), 2}); }

// Features that say something.
inline torch::Tensor noisy(const torch::Tensor& labels, uint64_t seed) {
  return (torch::one_hot(labels, 3) + noise({labels.size(0), 3}, seed)).to(torch::kFloat32);
}

inline std::vector<double> accuracies_of(const Readings& readings, const std::string& ood = "") {
  std::vector<double> accuracies;
  for (const auto& reading : readings_of(readings, "probe_accuracy")) {
    if (reading.ood == ood) accuracies.push_back(reading.value);
  }
  return accuracies;
}

// A network that is blind at first, and at last to OOD samples.
inline std::vector<Record> tunnel(int64_t ood_classes = 5) {
  std::vector<Record> records;
  for (const auto split : {Split::train, Split::test}) {
    const auto labels = labels_for(split, 3);
    records.push_back(probe_record(
        split, labels,
        {{"first", blind(labels)}, {"second", separable(labels)}, {"last", separable(labels)}}));
    const auto ood = labels_for(split, ood_classes);
    records.push_back(probe_record(
        split, ood, {{"first", separable(ood)}, {"second", separable(ood)}, {"last", blind(ood)}},
        "textures"));
  }
  return records;
}

// Both splits of one layer.
inline std::vector<Record> one_layer(const torch::Tensor& train, const torch::Tensor& test) {
  return {probe_record(Split::train, labels_for(Split::train, 3), {{"only", train}}),
          probe_record(Split::test, labels_for(Split::test, 3), {{"only", test}})};
}

inline std::vector<Record> noisy_layer() {
  return one_layer(noisy(labels_for(Split::train, 3), 1), noisy(labels_for(Split::test, 3), 2));
}

}  // namespace kelvin
