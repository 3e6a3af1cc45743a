#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kelvin {

// A NumPy array in C order.
struct Array {
  std::string dtype;           // NumPy's name without byte order: "f4", "f8", "i8", "i4", "u1"
  std::vector<int64_t> shape;  // empty for a scalar
  std::string bytes;           // little-endian elements

  int64_t size() const;  // number of elements
};

using Arrays = std::map<std::string, Array>;

// Reads an npz (a zip of npy files, stored or deflated).  Truncated, overlong or
// otherwise malformed files are an Error that names the path and the member.
// Members that are not `wanted` are not looked at; an empty set wants all.
Arrays read_npz(const std::filesystem::path& path, const std::set<std::string>& wanted = {});
Arrays read_npz(const std::filesystem::path& path,
                const std::function<bool(const std::string&)>& is_wanted);

// Writes an uncompressed npz; the same arrays always give the same bytes.
void write_npz(const std::filesystem::path& path, const Arrays& arrays);

}  // namespace kelvin
