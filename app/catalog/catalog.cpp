// Prints what the registries know, so that the tool can list it without loading LibTorch.

#include <iostream>
#include <nlohmann/json.hpp>

#include "kelvin/core/files.h"
#include "kelvin/data/dataset.h"
#include "kelvin/measures/detectors/detector.h"
#include "kelvin/measures/measure.h"
#include "kelvin/model/description.h"
#include "kelvin/model/model.h"
#include "kelvin/ops/simplex_map.h"
#include "kelvin/train/loss.h"

namespace {

template <class Entry>
nlohmann::ordered_json list_of(const kelvin::Registry<Entry>& registry) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [name, entry] : registry.entries()) {
    list.push_back({{"name", name}, {"summary", entry.summary}, {"reference", entry.reference}});
  }
  return list;
}

nlohmann::ordered_json list_of_softmaxes() {
  auto list = list_of(kelvin::simplex_maps());
  for (auto& entry : list) {
    entry["sums_to_one"] = kelvin::simplex_maps().find(entry.at("name")).sums_to_one;
  }
  return list;
}

// For CIFAR-10, with the settings that a run has by default.
nlohmann::ordered_json list_of_models() {
  auto list = list_of(kelvin::models());
  for (auto& entry : list) {
    const auto& known = kelvin::models().find(entry.at("name"));
    if (known.is_of_file) continue;
    kelvin::Settings settings("model", {});
    const kelvin::ModelShape shape;
    const auto model = known.build(shape, settings);
    const auto description = kelvin::describe(*model, shape);
    entry["parameters"] = description.parameters;
    entry["macs"] = description.macs;
    entry["layers"] = description.layers.size();
  }
  return list;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: kelvin_catalog OUTPUT\n";
    return 2;
  }
  const nlohmann::ordered_json catalog = {{"models", list_of_models()},
                                          {"datasets", list_of(kelvin::datasets())},
                                          {"measures", list_of(kelvin::measures())},
                                          {"detectors", list_of(kelvin::detectors())},
                                          {"softmaxes", list_of_softmaxes()},
                                          {"losses", list_of(kelvin::losses())}};
  kelvin::write_file_atomically(arguments[1], catalog.dump(1) + "\n");
}
