#pragma once

#include <string>
#include <string_view>

#include "kelvin/formats/pickle_literals.h"
#include "kelvin/formats/pickle_value.h"

namespace kelvin {

// Reads what Python's pickle.dump wrote in protocols 0 to 5: plain values and arrays of NumPy.  It
// executes nothing: a pickle that names any other function or class is refused.  Time and memory
// grow with the length of `bytes` only, whatever they say.  `where` names the file in messages.
// `bytes` must outlive the result.
Pickle parse_pickle(std::string_view bytes, const std::string& where);

// The same for plain values and what `names` makes.
Pickle parse_pickle(std::string_view bytes, const std::string& where, const PickleNames& names);

// The same for one pickle of several in a file: `input` is left behind its end.
Pickle take_pickle(PickleInput& input, const PickleNames& names);

}  // namespace kelvin
