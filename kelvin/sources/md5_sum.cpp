#include "kelvin/sources/md5_sum.h"

#include <md5.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"

namespace kelvin {
namespace {

class Md5 {
 public:
  Md5() { MD5Init(&context_); }

  void add(std::string_view bytes) {
    MD5Update(&context_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }

  std::string hex() {
    std::array<char, MD5_DIGEST_STRING_LENGTH> digits{};
    return MD5End(&context_, digits.data());
  }

 private:
  MD5_CTX context_{};
};

}  // namespace

std::string md5_of(std::string_view bytes) {
  Md5 md5;
  md5.add(bytes);
  return md5.hex();
}

std::string md5_of_file(const std::filesystem::path& path) {
  check_is_file(path);
  std::ifstream file(path, std::ios::binary);
  check(file.is_open(), path.string(), ": cannot read: ", std::strerror(errno));
  Md5 md5;
  std::vector<char> piece(size_t{1} << 16);
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    md5.add({piece.data(), static_cast<size_t>(file.gcount())});
  }
  check(!file.bad(), path.string(), ": cannot read to its end");
  return md5.hex();
}

}  // namespace kelvin
