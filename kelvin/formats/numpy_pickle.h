#pragma once

#include <string>
#include <string_view>

#include "kelvin/formats/pickle_value.h"

namespace kelvin {

// How NumPy's arrays are pickled: as calls of a few functions and classes.  Here a name is
// an inert mark, and a "call" of it makes a value by code of ours; a pickle that names anything
// else is refused, because to build it would be to run it.  `where` is file and offset.

// A mark for `module.name`; an Error that shows the name if it is none of NumPy's.
PickleValue known_name(std::string_view module, std::string_view name, const std::string& where);

// What the opcode REDUCE makes of a name and its arguments.
PickleValue reduced(Pickle& pickle, const PickleValue& name, const PickleValue& arguments,
                    const std::string& where);

// What the opcode BUILD does: fills an array or a dtype.
void build(Pickle& pickle, size_t object, const PickleValue& state, const std::string& where);

}  // namespace kelvin
