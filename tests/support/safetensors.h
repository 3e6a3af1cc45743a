#pragma once

#include <cstdint>
#include <cstring>
#include <string>

namespace kelvin {

// A safetensors file with this header, whatever it says, and these data.
inline std::string safetensors_with(const std::string& json, const std::string& data) {
  const uint64_t length = json.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + json + data;
}

}  // namespace kelvin
