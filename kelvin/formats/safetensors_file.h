#pragma once

#include <string>

#include "kelvin/formats/stored_tensors.h"

namespace kelvin {

// The safetensors format: 8 bytes of header length, a JSON header, then the tensors' bytes without
// holes.

// Strict: a header that lies about lengths, overlaps or types is an Error, never a crash.  Time
// and memory grow with the length of `file` only; no tensor is copied.  `where` names it in
// messages.
StoredTensors parse_safetensors(std::string file, const std::string& where);

// The whole file: metadata first if there are any, then the tensors in their order, padded so that
// the data begin at a multiple of 8.  The same tensors always give the same bytes.
std::string safetensors_bytes(const StoredTensors& tensors);

}  // namespace kelvin
