#pragma once

#include <cstdint>
#include <string_view>

#include "kelvin/formats/pickle_names.h"

namespace kelvin {

// How PyTorch's tensors are pickled: as calls of a few functions on storages, whose bytes lie
// beside the pickle under keys.  OrderedDict becomes a dict; what was set on it as an attribute is
// dropped.  Everything else that a checkpoint may hold, a Namespace of arguments, NumPy's scalars,
// a whole network, becomes an object that holds nothing: it is neither built nor run.
const PickleNames& torch_names();

// Bytes of an element of a storage, also of the types whose tensors are skipped; 0 if not known.
uint64_t torch_element_bytes(std::string_view dtype);

}  // namespace kelvin
