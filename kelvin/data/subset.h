#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kelvin/data/dataset.h"

namespace kelvin {

// The images at `indices`, in that order.
Images select(const Images& images, const std::vector<int64_t>& indices);

// `count` indices, ascending, as equally of each class as there are images for it, chosen by
// `seed`. All indices if there are no more than `count`.
std::vector<int64_t> balanced_sample(const torch::Tensor& labels, int64_t classes, int64_t count,
                                     uint64_t seed);

// Class numbers that a request means: {"10"} the first ten, otherwise names.
std::vector<int64_t> chosen_classes(const std::vector<std::string>& wanted,
                                    const std::vector<std::string>& class_names);

// The images of these classes, whose labels become their places in `chosen`.
Images of_classes(const Images& images, const std::vector<int64_t>& chosen);

// `count` images for the second, the others for the first; each class in proportion.
struct HeldOut {
  Images kept;
  Images held_out;
};
HeldOut hold_out(const Images& images, int64_t classes, int64_t count, uint64_t seed);

}  // namespace kelvin
