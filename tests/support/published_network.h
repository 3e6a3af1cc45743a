#pragma once

#include <torch/torch.h>

#include <set>
#include <string>
#include <vector>

#include "kelvin/data/dataset.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/model/weights.h"
#include "tests/support/built_model.h"
#include "tests/support/real_data.h"

namespace kelvin {

// For tests on what the published ResNet-20 makes of CIFAR-10.
class PublishedNetwork : public RealData {
 protected:
  // Of the first test images, batch by batch, with these layers; with all if none is named.
  std::vector<Record> records(int64_t samples, const std::set<std::string>& layers = {}) const {
    const auto model = built_model("resnet20");
    load_weights(data_folder() / "weights" / "cifar10-resnet20.safetensors", *model);
    const auto dataset = load_dataset("cifar10", {.train_samples = 10,
                                                  .test_samples = samples,
                                                  .data_folder = data_folder(),
                                                  .normalisation = Normalisation::imagenet});
    std::vector<Record> records;
    extract(*model, dataset, dataset, {.with_layers = true}, [&](Record record) {
      if (!layers.empty()) {
        std::erase_if(record.layers,
                      [&](const auto& layer) { return !layers.contains(layer.name); });
      }
      for (auto& layer : record.layers) layer.pre_activation = layer.before_add = torch::Tensor();
      records.push_back(std::move(record));
    });
    return records;
  }
};

}  // namespace kelvin
