#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "kelvin/core/check.h"

namespace kelvin {

static_assert(std::endian::native == std::endian::little, "our files are little-endian");

// Bounds-checked little-endian reads out of a file's bytes, which must outlive it.
class ByteReader {
 public:
  ByteReader(std::string_view bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {}

  template <class Number>
  Number number(uint64_t offset) const {
    Number value;
    std::memcpy(&value, part(offset, sizeof(Number)).data(), sizeof(Number));
    return value;
  }

  std::string_view part(uint64_t offset, uint64_t length) const {
    check(offset <= bytes_.size() && length <= bytes_.size() - offset, where_, ": cut off: needs ",
          length, " bytes at ", offset, ", the file has ", bytes_.size());
    return bytes_.substr(offset, length);
  }

  size_t size() const { return bytes_.size(); }
  const std::string& where() const { return where_; }

 private:
  std::string_view bytes_;
  std::string where_;
};

}  // namespace kelvin
