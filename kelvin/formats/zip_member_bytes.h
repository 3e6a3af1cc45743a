#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "kelvin/formats/zip_file.h"

namespace kelvin {

// The bytes of a zip's member from its first to its last, unpacked as far as they are taken.
class ZipMemberBytes {
 public:
  // `packed` and `where` must outlive it.
  ZipMemberBytes(std::string_view packed, const ZipMember& member, const std::string& where);
  ZipMemberBytes(const ZipMemberBytes&) = delete;
  ZipMemberBytes& operator=(const ZipMemberBytes&) = delete;
  ~ZipMemberBytes();

  uint64_t left() const { return left_; }
  uint32_t crc() const { return crc_; }  // of what was unpacked so far

  std::string take(uint64_t length);
  // An Error unless the packed bytes end where the member does.
  void expect_end();

 private:
  void inflate_into(std::string& bytes, uint64_t length);
  // How many bytes there were, at most `most`; 0 at the end and where the data are damaged.
  uint64_t step(char* out, uint64_t most);

  std::string_view packed_;
  const std::string& where_;
  uint64_t read_ = 0;  // of the packed bytes
  uint64_t left_ = 0;
  uint32_t crc_ = 0;
  bool is_packed_ = false;
  int result_ = Z_OK;
  z_stream stream_{};
};

}  // namespace kelvin
