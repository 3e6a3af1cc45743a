#pragma once

#include <vector>

#include "kelvin/report/glossary.h"

namespace kelvin {

// The part of the glossary that is about calibration.
const std::vector<Term>& calibration_glossary();

}  // namespace kelvin
