#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kelvin {

// A NumPy array in C order, whatever order of axes and bytes the file has.
struct Array {
  // NumPy's name without byte order: "f2", "f4", "f8", "i1" to "i8", "u1" to "u8", "b1"; and "bf16"
  // for bfloat16, of which an npy says "V2", two bytes of no type: ml_dtypes writes it so.
  std::string dtype;
  std::vector<int64_t> shape;  // empty for a scalar
  std::string bytes;           // little-endian elements

  int64_t size() const;  // number of elements
};

using Arrays = std::map<std::string, Array>;

// Reads an npz (a zip of npy files, stored or deflated).  Truncated, overlong or otherwise
// malformed files are an Error that names the path and the member.  Members that are not `wanted`
// are not looked at, not even read; an empty set wants all.  A member whose header does not fit its
// size is refused before it is unpacked, and so is one of which `check_header` throws, which is
// shown its name and the array without its bytes.
Arrays read_npz(const std::filesystem::path& path, const std::set<std::string>& wanted = {});
Arrays read_npz(const std::filesystem::path& path,
                const std::function<bool(const std::string&)>& is_wanted);
Arrays read_npz(const std::filesystem::path& path,
                const std::function<bool(const std::string&)>& is_wanted,
                const std::function<void(const std::string&, const Array&)>& check_header);

// The same of a file in memory; `where` names it in messages.
Arrays parse_npz(std::string_view file, const std::string& where);

// Writes an uncompressed npz whose comment is "kelvin"; the same arrays always give the same bytes.
void write_npz(const std::filesystem::path& path, const Arrays& arrays);

}  // namespace kelvin
