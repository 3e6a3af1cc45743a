#pragma once

#include "kelvin/formats/pickle_names.h"

namespace kelvin {

// How PyTorch's tensors are pickled: as calls of a few functions on storages, whose bytes lie
// beside the pickle under keys.  OrderedDict becomes a dict; what was set on it as an attribute is
// dropped.
const PickleNames& torch_names();

}  // namespace kelvin
