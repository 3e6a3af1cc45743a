#pragma once

#include <torch/types.h>

#include <cstdint>

#include "kelvin/core/settings.h"
#include "kelvin/measures/detectors/detector.h"

namespace kelvin {

// The directions that training features use least, around the point where the classifier says
// nothing.
struct NullSpace {
  torch::Tensor origin;      // [dims], u = -W^+ b: the smallest feature whose logits are all 0
  torch::Tensor directions;  // [dims, dims - principal dimensions], orthonormal

  int64_t principal_dimensions() const { return directions.size(0) - directions.size(1); }
  // [rows] lengths of what lies in it; 0 where that is no more than rounding.
  torch::Tensor norms(const torch::Tensor& features) const;
};

// The setting `dimensions` of a detector: how many principal ones are left out; 0 for as many as
// were published for features of that width.
int64_t read_principal_dimensions(Settings& settings);

// The published number: 1000 from a width of 2048 on, 300 of 512 features (ResNet-18), 512 in
// between; of fewer features half, for which nothing was published.
int64_t published_principal_dimensions(int64_t width);

// What the principal directions of h - u of training features leave; an Error if they leave none.
NullSpace null_space_of(const Detector& detector, const Record& id_train,
                        int64_t principal_dimensions);

}  // namespace kelvin
