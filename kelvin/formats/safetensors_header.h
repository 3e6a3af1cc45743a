#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace kelvin
