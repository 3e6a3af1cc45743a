#pragma once

#include "kelvin/formats/pickle_names.h"

namespace kelvin {

// How NumPy's arrays are pickled: as calls of a few functions and classes, then filled by BUILD.
const PickleNames& numpy_names();

}  // namespace kelvin
