#pragma once

#include <string>
#include <vector>

#include "kelvin/core/reading.h"

namespace kelvin {

// "gamma 0.001, matrix logits, ..."; keys in `without` are left out.
std::string definition_text(const Definition& definition,
                            const std::vector<std::string>& without = {});

}  // namespace kelvin
