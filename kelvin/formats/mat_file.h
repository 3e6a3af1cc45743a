#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kelvin {

// How the elements of an array are stored, by MATLAB's numbers.
enum class MatType : uint32_t {
  int8 = 1,
  uint8 = 2,
  int16 = 3,
  uint16 = 4,
  int32 = 5,
  uint32 = 6,
  single_real = 7,
  double_real = 9,
  int64 = 12,
  uint64 = 13
};

// An array of real numbers as it lies in the file.
struct MatArray {
  std::string_view name = {};
  // MATLAB stores numbers in the smallest type that holds them all, whatever they are to it.
  MatType type = MatType::uint8;
  std::vector<int64_t> shape = {};
  std::string_view bytes = {};  // little-endian, the first index runs fastest

  int64_t size() const;  // number of elements

  // The elements as whole numbers; an Error, which begins with `where`, if one is none.
  std::vector<int64_t> integers(const std::string& where) const;
};

// Reads a MAT file of version 5 (MATLAB 5 to 7.2), compressed or not: hands each array of numbers
// to `visit`, for whose call alone its views last.  Arrays of other kinds are left out.  Version
// 7.3, which is HDF5, and files of big-endian machines are an Error.
void visit_mat(std::string_view bytes, const std::string& where,
               const std::function<void(const MatArray&)>& visit);

}  // namespace kelvin
