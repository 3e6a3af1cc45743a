#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kelvin/formats/pickle_value.h"
#include "kelvin/formats/stored_tensors.h"

namespace kelvin {

// How PyTorch's tensors are pickled: as calls of a few functions on storages, whose bytes lie
// beside the pickle under keys.  OrderedDict becomes a dict; what was set on it as an attribute is
// dropped.  Everything else that a checkpoint may hold, a Namespace of arguments, NumPy's scalars,
// a whole network, becomes an object that holds nothing: it is neither built nor run.
const PickleNames& torch_names();

// Bytes of an element of a storage, also of the types whose tensors are skipped; 0 if not known.
uint64_t torch_element_bytes(std::string_view dtype);

// Reads a dict of tensors that PyTorch's torch.save wrote, as a zip or as versions before 1.6 did.
// It executes nothing: of what is neither a tensor nor a plain value nothing is built.
//
// Tensors come in the order of the dict, those of a dict in it as "outer.inner".  Values that are
// no tensors are left out, also complex, sparse and quantized ones; texts, numbers and booleans of
// the outermost dict go to the metadata.  A whole network instead of a dict, or where its weights
// should be, is an Error that says what to save.
// Tensors that lie row by row in the file are not copied.  Time and memory grow with the length of
// `file` only.  `where` names it in messages.
StoredTensors parse_torch_file(std::string file, const std::string& where);

}  // namespace kelvin
