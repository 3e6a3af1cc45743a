#pragma once

#include <cstdint>
#include <optional>

#include "kelvin/formats/pickle_input.h"
#include "kelvin/formats/pickle_value.h"

namespace kelvin {

// The value of an opcode that brings one: none, booleans, numbers, bytes and text.  Nothing for
// other opcodes.
std::optional<PickleValue> pickle_literal(uint8_t opcode, PickleInput& input, Pickle& pickle);

}  // namespace kelvin
