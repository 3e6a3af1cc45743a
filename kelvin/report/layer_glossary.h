#pragma once

#include <vector>

#include "kelvin/report/glossary.h"

namespace kelvin {

// The part of the glossary that is about spectra, layers, weights and gradients.
const std::vector<Term>& layer_glossary();

}  // namespace kelvin
