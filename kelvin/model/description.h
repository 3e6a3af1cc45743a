#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kelvin/model/model.h"

namespace kelvin {

struct LayerDescription {
  std::string name;
  std::vector<int64_t> weight;  // shapes; input and output are of one image
  std::vector<int64_t> input;
  std::vector<int64_t> output;
  int64_t parameters = 0;  // weight and bias
  int64_t macs = 0;        // multiply-adds for one image
};

// What a model is made of.  Totals include what is no layer: normalisations, projection shortcuts,
// embeddings, the products of attention.
struct ModelDescription {
  std::vector<LayerDescription> layers;
  int64_t parameters = 0;
  int64_t macs = 0;  // multiply-adds for one image
};

ModelDescription describe(Model& model, const ModelShape& shape);

// What taps see when the model is shown one black image in evaluation mode.
Taps taps_of_one_image(Model& model, const ModelShape& shape, const TapOptions& options = {});

}  // namespace kelvin
