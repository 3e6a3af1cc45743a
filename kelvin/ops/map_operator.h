#pragma once

#include <torch/types.h>

#include <string>

#include "kelvin/ops/simplex_map.h"

namespace kelvin {

// Registers kelvin::NAME(x, temperature, *, settings of the map, dim, mask) with PyTorch.  Made of
// operators of PyTorch's and of kelvin's, it has their gradients and their meta functions.
void define_map_operator(const std::string& name, const SimplexMapEntry& entry);

// `map` of x over a temperature and along dimension `dim`, where `mask`, if there is one, is true:
// booleans that can be expanded to the sizes of x.  What is masked gets 0.  `name` opens messages.
torch::Tensor mapped_along(const std::string& name, const SimplexMap& map, const torch::Tensor& x,
                           double temperature, int64_t dim, const torch::Tensor& mask);

}  // namespace kelvin
