#pragma once

#include <vector>

#include "kelvin/report/glossary.h"

namespace kelvin {

// The part of the glossary that is about neural collapse.
const std::vector<Term>& collapse_glossary();

}  // namespace kelvin
