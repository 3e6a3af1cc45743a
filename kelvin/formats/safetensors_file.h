#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kelvin/formats/stored_tensors.h"

namespace kelvin {

// What the header says about one tensor, word by word: nothing of it is checked against the data.
struct SafetensorsEntry {
  std::string name = {};
  std::string dtype = {};
  std::vector<uint64_t> shape = {};
  std::vector<uint64_t> offsets = {};
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries = {};  // as they stand in the text
  std::map<std::string, std::string> metadata = {};
};

// Reads the JSON of a safetensors file: an object of entries with dtype, shape and data_offsets,
// and perhaps __metadata__, an object of texts.  Nothing else, nothing twice.  Time and memory
// grow with the length of `json` only, however it is nested.  `where` names the file in messages.
SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& where);

// The safetensors format: 8 bytes of header length, a JSON header, then the tensors' bytes without
// holes.

// Strict: a header that lies about lengths, overlaps or types is an Error, never a crash.  Time
// and memory grow with the length of `file` only; no tensor is copied.  `where` names it in
// messages.
// If the metadata have a checksum of ours, the tensors must have it.
StoredTensors parse_safetensors(std::string file, const std::string& where);

// The whole file: metadata first if there are any, then the tensors in their order, padded so that
// the data begin at a multiple of 8.  The same tensors always give the same bytes.
std::string safetensors_bytes(const StoredTensors& tensors);

// Under which a file of ours has its checksum in the metadata, and what stands there: CRC-32C of
// all bytes of the tensors in their order, in hexadecimal digits.  A flipped bit in a file of
// weights would otherwise change numbers in their fifth digit, and nobody would know.
constexpr auto kChecksumKey = "kelvin.crc32c";
std::string checksum_text(const std::vector<StoredTensor>& tensors);

}  // namespace kelvin
